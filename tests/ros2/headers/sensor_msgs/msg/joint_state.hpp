#pragma once
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sensor_msgs::msg
{
struct JointState
{
  using SharedPtr = std::shared_ptr<JointState>;
  static inline std::function<void(const JointState&)> receive;
  int header = 0;
  std::vector<std::string> name;
  std::vector<double> position, velocity, effort;
  void print(const std::string& topic) const
  {
    std::printf("%s", topic.c_str());
    for (double x : effort)
      std::printf(" %.17g", x);
    std::printf("\n");
  }
};
}  // namespace sensor_msgs::msg
