// The interface of inverse_dynamics_solver 2, without its texts.
#pragma once
#include <Eigen/Core>
#include <rclcpp/rclcpp.hpp>
#include <string>

namespace inverse_dynamics_solver
{
class InverseDynamicsSolver
{
public:
  virtual ~InverseDynamicsSolver() {}
  virtual void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr parameters_interface = nullptr,
                          const std::string& param_namespace = "", const std::string& robot_description = "") = 0;
  virtual Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd&) const = 0;
  virtual Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd&, const Eigen::VectorXd&) const = 0;
  virtual Eigen::VectorXd getGravityVector(const Eigen::VectorXd&) const = 0;
  virtual Eigen::VectorXd getFrictionVector(const Eigen::VectorXd&) const = 0;
  virtual Eigen::VectorXd getTorques(const Eigen::VectorXd&, const Eigen::VectorXd&, const Eigen::VectorXd&) const = 0;
};
}  // namespace inverse_dynamics_solver
