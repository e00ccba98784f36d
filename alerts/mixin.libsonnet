// Rules and dashboards in the layout of monitoring mixins (https://monitoring.mixins.dev). The groups of a rule file contain recordings beside
// alerts; prometheusAlerts has all of them. `_config` replaces the addresses that alerts link to, as the options of `ordering-prober alerts` do.
local config = {
  _config+:: {
    pages: 'http://localhost:8080',
    dashboards: 'http://localhost:3000',
    runbooks: self.pages + '/runbooks',
  },
};

local replaced(text, addresses) =
  std.strReplace(
    std.strReplace(
      std.strReplace(text, 'http://localhost:8080/runbooks', addresses.runbooks),
      'http://localhost:8080',
      addresses.pages
    ),
    'http://localhost:3000',
    addresses.dashboards
  );

config {
  local mixin = self,
  prometheusAlerts+:: {
    groups+: std.flatMap(
      function(text) std.parseYaml(replaced(text, mixin._config)).groups,
      [importstr 'objectives.rules.yaml', importstr 'service.rules.yaml', importstr 'prober.rules.yaml'],
    ),
  },
  prometheusRules+:: { groups+: [] },
  grafanaDashboards+:: {
    'control-plane.json': import '../dashboards/control-plane.json',
    'jobs.json': import '../dashboards/jobs.json',
    'keys.json': import '../dashboards/keys.json',
    'latency.json': import '../dashboards/latency.json',
    'ordering.json': import '../dashboards/ordering.json',
    'overview.json': import '../dashboards/overview.json',
    'prober.json': import '../dashboards/prober.json',
    'publisher.json': import '../dashboards/publisher.json',
  },
}
