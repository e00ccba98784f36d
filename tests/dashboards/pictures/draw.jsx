// Draws one dashboard with Grafana's own components, from `window.DASHBOARD`: the dashboard's JSON and what Prometheus answered.
// Heatmaps and state timelines are parts of the Grafana application that are not published; they are drawn here, in the same colours.

import 'uplot/dist/uPlot.min.css';
import React from 'react';
import { createRoot } from 'react-dom/client';
import { createTheme, dateTime, getFieldDisplayValues, renderMarkdown } from '@grafana/data';
import { BigValue, PanelChrome, ThemeContext, TimeSeries } from '@grafana/ui';
import { configured, gridOf, seriesFrames } from './frames.js';
import { Heatmap, StateTimeline, Rows } from './shapes.jsx';

const theme = createTheme({ colors: { mode: 'dark' } });
const CELL = 38;
const GAP = 8;
const TOP = 92;
const WIDTH = 1280;
const { board, answers, start, end, step } = window.DASHBOARD;
const timeRange = { from: dateTime(start * 1000), to: dateTime(end * 1000), raw: { from: dateTime(start * 1000), to: dateTime(end * 1000) } };
const plain = (text) => text;

function NoData() {
  return <div className="nothing">No data</div>;
}

function Stat({ panel, frames, width, height }) {
  const values = getFieldDisplayValues({
    fieldConfig: panel.fieldConfig,
    reduceOptions: panel.options.reduceOptions,
    replaceVariables: plain,
    theme,
    data: configured(panel, frames, theme),
    timeZone: 'utc',
  });
  return <BigValue value={{ ...values[0].display, title: undefined }} width={width} height={height} theme={theme} colorMode="value" graphMode="none" justifyMode="auto" />;
}

function Body({ panel, width, height }) {
  const asked = answers[panel.id] ?? [];
  if (panel.type === 'text') {
    return <div className="markdown" dangerouslySetInnerHTML={{ __html: renderMarkdown(panel.options.content) }} />;
  }
  const grid = gridOf(start, end, step);
  const frames = seriesFrames(asked, panel.type === 'stat' ? null : grid);
  if (panel.type === 'stat') {
    return <Stat panel={panel} frames={frames} width={width} height={height} />;
  }
  if (frames.length === 0) {
    return <NoData />;
  }
  if (panel.type === 'table') {
    return <Rows panel={panel} asked={asked} theme={theme} />;
  }
  if (panel.type === 'heatmap') {
    return <Heatmap frames={frames} unit={panel.options.yAxis.unit} theme={theme} width={width} height={height} grid={grid} />;
  }
  const shown = configured(panel, frames, theme);
  if (panel.type === 'state-timeline') {
    return <StateTimeline frames={shown} panel={panel} theme={theme} width={width} height={height} grid={grid} />;
  }
  return (
    <TimeSeries frames={shown} structureRev={1} width={width} height={height} timeRange={timeRange} timeZone="utc" legend={panel.options.legend} options={{}} />
  );
}

function Panel({ panel }) {
  const { x, y, w, h } = panel.gridPos;
  const place = { left: (x * (WIDTH - GAP)) / 24 + GAP, top: TOP + y * CELL, width: (w * (WIDTH - GAP)) / 24 - GAP, height: h * CELL - GAP };
  if (panel.type === 'row') {
    return <div className="row" style={place}>⌄ {panel.title}</div>;
  }
  return (
    <div className="panel" style={place}>
      <PanelChrome title={panel.title} description={panel.description} width={place.width} height={place.height}>
        {(width, height) => <Body panel={panel} width={width} height={height} />}
      </PanelChrome>
    </div>
  );
}

function Header() {
  const chosen = (one) => (one.type === 'custom' && !one.includeAll ? one.query.split(',')[0] : one.type === 'textbox' ? one.query : one.type === 'datasource' ? 'Prometheus' : 'All');
  const period = `${timeRange.from.toISOString().slice(0, 16).replace('T', ' ')} to ${timeRange.to.toISOString().slice(11, 16)} UTC`;
  return (
    <header>
      <h1>{board.title} <small>{period}</small></h1>
      {board.templating.list.filter((one) => one.type !== 'textbox').map((one) => (
        <span className="variable" key={one.name}><b>{one.label}</b>{chosen(one)}</span>
      ))}
    </header>
  );
}

function Board() {
  const bottom = Math.max(...board.panels.map((panel) => panel.gridPos.y + panel.gridPos.h));
  return (
    <ThemeContext.Provider value={theme}>
      <main style={{ width: WIDTH, height: TOP + bottom * CELL + GAP }}>
        <Header />
        {board.panels.map((panel) => <Panel key={panel.id} panel={panel} />)}
      </main>
    </ThemeContext.Provider>
  );
}

createRoot(document.getElementById('root')).render(<Board />);
document.fonts.ready.then(() => setTimeout(() => document.body.setAttribute('data-drawn', 'yes'), 500));
