{application, rsctl_delayed_message, [
  {description, "Stand-in for the delayed-message plugin, for tests"},
  {vsn, "0.1.0"},
  {modules, [rsctl_delayed_message]},
  {registered, []},
  {applications, [kernel, stdlib, rabbit_common, rabbit]},
  {env, []}
]}.
