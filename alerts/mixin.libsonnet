// Rules and dashboards in the layout of monitoring mixins (https://monitoring.mixins.dev). The groups of a rule file contain recordings beside
// alerts; prometheusAlerts has all of them. `_config` replaces the addresses that alerts link to, as the options of `ordering-prober alerts` do.
local config = {
  _config+:: {
    pages: 'http://localhost:8080',
    dashboards: 'http://localhost:3000',
    runbooks: self.pages + '/runbooks',
  },
};

local replaced(text, addresses) = std.foldl(
  function(text, pair) std.strReplace(text, pair[0], pair[1]),
  [
    ['http://localhost:8080/runbooks', addresses.runbooks],
    ['http://localhost:8080', addresses.pages],
    ['http://localhost:3000', addresses.dashboards],
    ['${VAR_RUNBOOKS}', addresses.runbooks],
    ['${VAR_STATUS_PAGE}', addresses.pages],
  ],
  text
);

config {
  local mixin = self,
  local board(text) = std.parseJson(replaced(text, mixin._config)),
  prometheusAlerts+:: {
    groups+: std.flatMap(
      function(text) std.parseYaml(replaced(text, mixin._config)).groups,
      [importstr 'objectives.rules.yaml', importstr 'service.rules.yaml', importstr 'prober.rules.yaml'],
    ),
  },
  prometheusRules+:: { groups+: [] },
  grafanaDashboards+:: {
    'control-plane.json': board(importstr '../dashboards/control-plane.json'),
    'jobs.json': board(importstr '../dashboards/jobs.json'),
    'keys.json': board(importstr '../dashboards/keys.json'),
    'latency.json': board(importstr '../dashboards/latency.json'),
    'ordering.json': board(importstr '../dashboards/ordering.json'),
    'overview.json': board(importstr '../dashboards/overview.json'),
    'prober.json': board(importstr '../dashboards/prober.json'),
    'publisher.json': board(importstr '../dashboards/publisher.json'),
  },
}
