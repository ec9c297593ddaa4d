// Node that publishes the torque of the model beside the measured one.
//
// Subscribes to joint_states (sensor_msgs/JointState with positions, velocities and, if present, efforts).
// Publishes on ~/torque a JointState whose effort is the model's torque [N m, N] at zero acceleration, and on ~/external
// the measured effort minus that torque: the torque of contacts and of the acceleration.

#include <map>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <string>
#include <vector>

#include "model_name.hpp"

class ModelTorque : public rclcpp::Node
{
public:
  ModelTorque() : rclcpp::Node("model_torque")
  {
    // Joints in the order of the exported model; see the head of its header file.
    joints_ = declare_parameter<std::vector<std::string>>("joints", std::vector<std::string>());
    if (joints_.size() != MODEL_JOINTS)
      throw std::invalid_argument("Parameter 'joints' names " + std::to_string(joints_.size()) + " joints; the model has " +
                                  std::to_string(MODEL_JOINTS) + ". Use the order in the head of the C header.");
    torque_ = create_publisher<sensor_msgs::msg::JointState>("~/torque", rclcpp::SensorDataQoS());
    external_ = create_publisher<sensor_msgs::msg::JointState>("~/external", rclcpp::SensorDataQoS());
    states_ = create_subscription<sensor_msgs::msg::JointState>(
        "joint_states", rclcpp::SensorDataQoS(),
        [this](const sensor_msgs::msg::JointState::SharedPtr message) { update(*message); });
  }

private:
  void update(const sensor_msgs::msg::JointState& state)
  {
    double q[MODEL_JOINTS], dq[MODEL_JOINTS], measured[MODEL_JOINTS];
    const double ddq[MODEL_JOINTS] = {};
    const bool efforts = state.effort.size() == state.name.size();
    for (std::size_t k = 0; k < MODEL_JOINTS; ++k)
    {
      std::size_t i = 0;
      while (i < state.name.size() && state.name[i] != joints_[k])
        ++i;
      if (i >= state.name.size() || i >= state.position.size() || i >= state.velocity.size())
        return;  // a message about other joints, or without velocities
      q[k] = state.position[i];
      dq[k] = state.velocity[i];
      measured[k] = efforts ? state.effort[i] : 0.0;
    }
    sensor_msgs::msg::JointState out;
    out.header = state.header;
    out.name = joints_;
    out.effort.resize(MODEL_JOINTS);
    MODEL_INVERSE_DYNAMICS(q, dq, ddq, out.effort.data());
    torque_->publish(out);
    if (!efforts)
      return;
    for (std::size_t k = 0; k < MODEL_JOINTS; ++k)
      out.effort[k] = measured[k] - out.effort[k];
    external_->publish(out);
  }

  std::vector<std::string> joints_;
  rclcpp::Publisher<sensor_msgs::msg::JointState>::SharedPtr torque_, external_;
  rclcpp::Subscription<sensor_msgs::msg::JointState>::SharedPtr states_;
};

int main(int count, char** words)
{
  rclcpp::init(count, words);
  rclcpp::spin(std::make_shared<ModelTorque>());
  rclcpp::shutdown();
  return 0;
}
