// The few parts of rclcpp that the node and the plug-in use: one node, messages by function calls.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace rclcpp
{
namespace node_interfaces
{
struct NodeParametersInterface
{
  using ConstSharedPtr = std::shared_ptr<const NodeParametersInterface>;
};
}  // namespace node_interfaces

struct SensorDataQoS
{
};

template <typename Message>
struct Publisher
{
  using SharedPtr = std::shared_ptr<Publisher>;
  std::string topic;
  void publish(const Message& message) { message.print(topic); }
};

template <typename Message>
struct Subscription
{
  using SharedPtr = std::shared_ptr<Subscription>;
};

struct Node
{
  // Set by the test's main program.
  static inline std::map<std::string, std::vector<std::string>> parameters;
  explicit Node(const std::string&) {}
  template <typename Value>
  Value declare_parameter(const std::string& name, const Value&)
  {
    return parameters[name];
  }
  template <typename Message>
  typename Publisher<Message>::SharedPtr create_publisher(const std::string& topic, SensorDataQoS)
  {
    return std::make_shared<Publisher<Message>>(Publisher<Message>{topic});
  }
  template <typename Message, typename Call>
  typename Subscription<Message>::SharedPtr create_subscription(const std::string&, SensorDataQoS, Call call)
  {
    Message::receive = [call](const Message& message) { call(std::make_shared<Message>(message)); };
    return std::make_shared<Subscription<Message>>();
  }
};

void init(int, char**);
void spin(std::shared_ptr<Node>);
void shutdown();
}  // namespace rclcpp
