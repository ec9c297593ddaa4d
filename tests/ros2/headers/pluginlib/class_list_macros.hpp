#pragma once
#define PLUGINLIB_EXPORT_CLASS(Class, Base) \
  Base* create() { return new Class(); }
