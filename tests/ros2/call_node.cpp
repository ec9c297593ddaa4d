// Sends one message to the node; `spin` stands for the network.
#include <rclcpp/rclcpp.hpp>
#include <sensor_msgs/msg/joint_state.hpp>

void rclcpp::init(int, char**) { rclcpp::Node::parameters["joints"] = {"q1", "q2", "q3"}; }
void rclcpp::shutdown() {}
void rclcpp::spin(std::shared_ptr<rclcpp::Node>)
{
  sensor_msgs::msg::JointState state;
  state.name = {"q3", "other", "q1", "q2"};
  state.position = {0.7, 9.0, 0.3, -0.5};
  state.velocity = {-0.6, 9.0, 0.4, 0.2};
  state.effort = {3.0, 9.0, 1.0, 2.0};
  sensor_msgs::msg::JointState::receive(state);
  state.velocity.clear();
  sensor_msgs::msg::JointState::receive(state);  // ignored
}
