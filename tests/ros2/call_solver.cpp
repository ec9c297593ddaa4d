// Prints what the plug-in computes for one motion, one quantity per line.
#include <cstdio>
#include <inverse_dynamics_solver/inverse_dynamics_solver.hpp>
#include <stdexcept>

inverse_dynamics_solver::InverseDynamicsSolver* create();

static void print(const char* name, const std::vector<double>& values)
{
  std::printf("%s", name);
  for (double x : values)
    std::printf(" %.17g", x);
  std::printf("\n");
}

int main()
{
  Eigen::VectorXd q(3), dq(3), ddq(3);
  q.values = {0.3, -0.5, 0.7};
  dq.values = {0.4, 0.2, -0.6};
  ddq.values = {1.0, 0.0, -2.0};
  auto* solver = create();
  solver->initialize();
  print("torques", solver->getTorques(q, dq, ddq).values);
  print("coriolis", solver->getCoriolisVector(q, dq).values);
  print("gravity", solver->getGravityVector(q).values);
  print("friction", solver->getFrictionVector(dq).values);
  print("inertia", solver->getInertiaMatrix(q).values);
  try
  {
    solver->getGravityVector(Eigen::VectorXd(2));
  }
  catch (const std::invalid_argument& error)
  {
    std::printf("error %s\n", error.what());
  }
  return 0;
}
