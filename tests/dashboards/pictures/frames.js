// What Prometheus answered as Grafana's data frames, with the panel's units, thresholds, mappings and colours.

import { FieldType, getDisplayProcessor } from '@grafana/data';

export function gridOf(start, end, step) {
  return Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, index) => start + index * step);
}

export function legendOf(labels, format) {
  if (format && format !== '__auto') {
    return format.replace(/{{\s*(\w+)\s*}}/g, (_, name) => labels[name] ?? '');
  }
  const pairs = Object.entries(labels).filter(([name]) => name !== '__name__');
  if (pairs.length === 1) {
    return pairs[0][1];
  }
  return pairs.length === 0 ? 'Value' : `{${pairs.map(([name, value]) => `${name}="${value}"`).join(', ')}}`;
}

// One frame per series. On a grid of times what is missing becomes a gap; without one the last value alone counts.
export function seriesFrames(asked, grid) {
  return asked.flatMap(({ legend, result }) =>
    result.map(({ metric, value, values }) => {
      const points = new Map((values ?? [value]).map(([time, number]) => [Math.round(time), Number(number)]));
      const times = grid ? grid.map(Math.round) : [...points.keys()];
      const numbers = times.map((time) => points.get(time) ?? null).map((number) => (Number.isNaN(number) ? null : number));
      const name = legendOf(metric, legend);
      const fields = [
        { name: 'Time', type: FieldType.time, config: {}, values: times.map((time) => time * 1000) },
        { name, type: FieldType.number, config: { displayNameFromDS: name }, labels: metric, values: numbers },
      ];
      return { name, fields, length: times.length, labels: metric };
    })
  );
}

// What is different for the series or column of this name.
export function overridden(panel, name) {
  const result = {};
  for (const { matcher, properties } of panel.fieldConfig.overrides) {
    if (matcher.options === name) {
      for (const { id, value } of properties) {
        result[id] = value;
      }
    }
  }
  return result;
}

export function configured(panel, frames, theme) {
  const { custom, ...defaults } = panel.fieldConfig.defaults;
  return frames.map((frame, seriesIndex) => {
    const [time, field] = frame.fields;
    field.config = { ...field.config, ...defaults, ...overridden(panel, frame.name), custom };
    field.state = { seriesIndex, displayName: frame.name };
    field.display = getDisplayProcessor({ field, theme, timeZone: 'utc' });
    time.display = getDisplayProcessor({ field: time, theme, timeZone: 'utc' });
    return frame;
  });
}
