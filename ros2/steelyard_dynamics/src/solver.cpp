// Plug-in of inverse_dynamics_solver around the C code of an identified model.
//
// The C code gives the torque of a whole motion, with friction. Rigid-body torques are even in the velocity and friction
// is odd, so the halves of the sum and of the difference of both directions separate them. A friction that differs
// between the directions (asymmetric) leaves its mean in the Coriolis vector; getTorques is exact in any case.

#include <Eigen/Core>
#include <array>
#include <inverse_dynamics_solver/inverse_dynamics_solver.hpp>
#include <pluginlib/class_list_macros.hpp>
#include <stdexcept>
#include <string>

#include "model_name.hpp"

namespace steelyard_dynamics
{
class Solver : public inverse_dynamics_solver::InverseDynamicsSolver
{
public:
  void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr, const std::string&,
                  const std::string&) override
  {
    // The model is compiled in; neither parameters nor the robot description are needed.
  }

  Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd& q) const override
  {
    require(q, "joint_positions");
    Eigen::Matrix<double, MODEL_JOINTS, MODEL_JOINTS, Eigen::RowMajor> matrix;
    MODEL_MASS_MATRIX(q.data(), matrix.data());
    return matrix;
  }

  Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd& q, const Eigen::VectorXd& dq) const override
  {
    const Eigen::VectorXd zero = Eigen::VectorXd::Zero(MODEL_JOINTS);
    return 0.5 * (getTorques(q, dq, zero) + getTorques(q, -dq, zero)) - getGravityVector(q);
  }

  Eigen::VectorXd getGravityVector(const Eigen::VectorXd& q) const override
  {
    require(q, "joint_positions");
    Eigen::VectorXd torque(MODEL_JOINTS);
    MODEL_GRAVITY(q.data(), torque.data());
    return torque;
  }

  // Friction at the zero position; a friction that changes with the position or the load is in getTorques only.
  Eigen::VectorXd getFrictionVector(const Eigen::VectorXd& dq) const override
  {
    const Eigen::VectorXd zero = Eigen::VectorXd::Zero(MODEL_JOINTS);
    return 0.5 * (getTorques(zero, dq, zero) - getTorques(zero, -dq, zero));
  }

  // Unlike the base class, with friction and all other terms of the model.
  Eigen::VectorXd getTorques(const Eigen::VectorXd& q, const Eigen::VectorXd& dq,
                             const Eigen::VectorXd& ddq) const override
  {
    require(q, "joint_positions");
    require(dq, "joint_velocities");
    require(ddq, "joint_accelerations");
    Eigen::VectorXd torque(MODEL_JOINTS);
    MODEL_INVERSE_DYNAMICS(q.data(), dq.data(), ddq.data(), torque.data());
    return torque;
  }

private:
  static void require(const Eigen::VectorXd& values, const char* name)
  {
    if (values.size() != MODEL_JOINTS)
      throw std::invalid_argument(std::string(name) + " has " + std::to_string(values.size()) +
                                  " entries; the model has " + std::to_string(MODEL_JOINTS) + " joints.");
  }
};
}  // namespace steelyard_dynamics

PLUGINLIB_EXPORT_CLASS(steelyard_dynamics::Solver, inverse_dynamics_solver::InverseDynamicsSolver)
