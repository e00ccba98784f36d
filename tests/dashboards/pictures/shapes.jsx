// Tables, heatmaps and state timelines: values, units and colours by Grafana's own code, shapes by ours.

import React from 'react';
import { FieldType, formattedValueToString, getDisplayProcessor, getValueFormat } from '@grafana/data';
import { interpolateTurbo } from 'd3-scale-chromatic';
import { overridden } from './frames.js';

const LEFT = 60;
const BOTTOM = 22;

function Times({ grid, theme, width, height, left }) {
  const count = Math.max(2, Math.floor((width - left) / 110));
  const times = Array.from({ length: count }, (_, index) => grid[Math.floor((index * (grid.length - 1)) / count)]);
  const x = (time) => left + ((width - left) * (time - grid[0])) / (grid[grid.length - 1] - grid[0]);
  return times.map((time) => (
    <text key={time} x={x(time)} y={height - 6} fill={theme.colors.text.secondary} fontSize="11">
      {new Date(time * 1000).toISOString().slice(11, 16)}
    </text>
  ));
}

export function Heatmap({ frames, unit, theme, width, height, grid }) {
  const bounds = frames.map((frame) => Number(frame.labels.le === '+Inf' ? Infinity : frame.labels.le));
  const rising = frames.map((frame, index) => [bounds[index], frame.fields[1].values]).sort((a, b) => a[0] - b[0]);
  const cells = rising.map(([bound, values], row) => [bound, values.map((value, column) => Math.max(0, (value ?? 0) - (row ? rising[row - 1][1][column] ?? 0 : 0)))]);
  const most = Math.max(1, ...cells.flatMap(([, values]) => values));
  const cellWidth = (width - LEFT) / grid.length;
  const cellHeight = (height - BOTTOM) / cells.length;
  const format = getValueFormat(unit);
  const every = Math.ceil(14 / cellHeight);
  return (
    <svg width={width} height={height}>
      {cells.flatMap(([bound, values], row) =>
        values.map((value, column) =>
          value > 0.5 ? (
            <rect key={`${row} ${column}`} x={LEFT + column * cellWidth} y={height - BOTTOM - (row + 1) * cellHeight} width={Math.max(1, cellWidth - 1)} height={Math.max(1, cellHeight - 1)} fill={interpolateTurbo(0.1 + 0.85 * Math.sqrt(value / most))} />
          ) : null
        )
      )}
      {cells.map(([bound], row) =>
        row % every === 0 ? (
          <text key={bound} x={LEFT - 6} y={height - BOTTOM - row * cellHeight - 2} textAnchor="end" fill={theme.colors.text.secondary} fontSize="11">
            {bound === Infinity ? '+Inf' : formattedValueToString(format(bound))}
          </text>
        ) : null
      )}
      <Times grid={grid} theme={theme} width={width} height={height} left={LEFT} />
    </svg>
  );
}

export function StateTimeline({ frames, panel, theme, width, height, grid }) {
  const left = 140;
  const legend = 24;
  const rowHeight = (height - BOTTOM - legend) / frames.length;
  const cellWidth = (width - left) / grid.length;
  const named = Object.values(panel.fieldConfig.defaults.mappings[0].options);
  return (
    <div>
      <svg width={width} height={height - legend}>
        {frames.map((frame, row) => (
          <g key={frame.name}>
            <text x={left - 8} y={row * rowHeight + rowHeight / 2 + 4} textAnchor="end" fill={theme.colors.text.primary} fontSize="12">{frame.name}</text>
            {frame.fields[1].values.map((value, column) =>
              value === null ? null : (
                <rect key={column} x={left + column * cellWidth} y={row * rowHeight + 3} width={cellWidth + 0.5} height={rowHeight - 6} fill={theme.visualization.getColorByName(frame.fields[1].display(value).color)} />
              )
            )}
          </g>
        ))}
        <Times grid={grid} theme={theme} width={width} height={height - legend} left={left} />
      </svg>
      <div className="legend">
        {named.map((one) => <span key={one.text}><i style={{ background: theme.visualization.getColorByName(one.color) }} />{one.text}</span>)}
      </div>
    </div>
  );
}

// One row per combination of labels, one column per query, as the panel's transformations make them.
export function Rows({ panel, asked, theme }) {
  const { renameByName, indexByName } = panel.transformations.find((one) => one.id === 'organize').options;
  const headings = Object.keys(indexByName).sort((a, b) => indexByName[a] - indexByName[b]);
  const rows = new Map();
  for (const { refId, result } of asked) {
    for (const { metric, value } of result) {
      const key = JSON.stringify(Object.entries(metric).sort());
      const name = asked.length > 1 ? `Value #${refId}` : 'Value';
      rows.set(key, { ...(rows.get(key) ?? metric), [name]: Number.isNaN(Number(value[1])) ? null : Number(value[1]) });
    }
  }
  const { custom, ...defaults } = panel.fieldConfig.defaults;
  const cell = (name, row) => {
    const heading = renameByName[name] ?? name;
    if (!name.startsWith('Value')) {
      return { text: row[name] ?? '' };
    }
    const config = { ...defaults, ...overridden(panel, heading) };
    const shown = getDisplayProcessor({ field: { type: FieldType.number, config }, theme, timeZone: 'utc' })(row[name] ?? null);
    return { text: formattedValueToString(shown), color: config['custom.cellOptions'] || shown.text === defaults.noValue ? shown.color : undefined, number: true };
  };
  return (
    <table>
      <thead><tr>{headings.map((name) => <th key={name} className={name.startsWith('Value') ? 'number' : ''}>{renameByName[name] ?? name}</th>)}</tr></thead>
      <tbody>
        {[...rows.values()].map((row, index) => (
          <tr key={index}>
            {headings.map((name) => {
              const { text, color, number } = cell(name, row);
              return <td key={name} className={number ? 'number' : ''} style={{ color }}>{text}</td>;
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
