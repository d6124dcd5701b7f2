import { dashboards } from "./dashboards.mjs";

/**
 * The Grafana dashboards, by file name.
 *
 * @returns {Record<string, string>}
 */
export function renderDashboards() {
  return Object.fromEntries(
    dashboards.map((dashboard) => [
      `${dashboard.uid}.json`,
      `${JSON.stringify(renderDashboard(dashboard), null, 2)}\n`,
    ]),
  );
}

const datasource = { type: "prometheus", uid: "$datasource" };
const columns = 24;
const sizes = { stat: { w: 6, h: 4 }, timeseries: { w: 12, h: 8 } };

/** @param {import("./dashboards.mjs").Dashboard} dashboard */
function renderDashboard({ uid, title, byPolicy = false, panels }) {
  let [x, y, rowHeight] = [0, 0, 0];
  const placed = panels.map((panel, index) => {
    const { w, h } = sizes[panel.as ?? "timeseries"];
    if (x + w > columns || (rowHeight !== 0 && h !== rowHeight)) [x, y] = [0, y + rowHeight];
    const gridPos = { x, y, w, h };
    x += w;
    rowHeight = h;
    return renderPanel(panel, index + 1, gridPos);
  });
  return {
    uid,
    title,
    tags: ["sluice"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    links: [
      { type: "dashboards", title: "Sluice", tags: ["sluice"], asDropdown: true, includeVars: true, keepTime: true },
    ],
    templating: { list: renderVariables(byPolicy) },
    panels: placed,
  };
}

/** @param {boolean} byPolicy */
function renderVariables(byPolicy) {
  const choice = (/** @type {string} */ name, /** @type {string} */ query) => ({
    ...{ type: "query", name, label: name, datasource, query: { query, refId: name }, definition: query },
    ...{
      refresh: 2,
      sort: 1,
      includeAll: true,
      multi: true,
      allValue: ".+",
      current: { text: "All", value: "$__all" },
    },
  });
  return [
    { type: "datasource", name: "datasource", label: "Prometheus", query: "prometheus", current: {} },
    choice("job", "label_values(sluice_build_info, job)"),
    ...(byPolicy ? [choice("policy", 'label_values(sluice_checks_total{job=~"$job"}, policy)')] : []),
  ];
}

/**
 * @param {import("./dashboards.mjs").Panel} panel
 * @param {number} id
 * @param {{ x: number, y: number, w: number, h: number }} gridPos
 */
function renderPanel({ title, unit, queries, help, as, threshold }, id, gridPos) {
  const steps = [
    { color: "green", value: null },
    ...(threshold === undefined ? [] : [{ color: "red", value: threshold }]),
  ];
  return {
    id,
    type: as ?? "timeseries",
    title,
    ...(help === undefined ? {} : { description: help }),
    datasource,
    gridPos,
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        thresholds: { mode: "absolute", steps },
        ...(as === undefined && threshold !== undefined ? { custom: { thresholdsStyle: { mode: "line" } } } : {}),
      },
      overrides: [],
    },
    options:
      as === "stat"
        ? { reduceOptions: { calcs: ["lastNotNull"] }, colorMode: "value", graphMode: "area" }
        : {
            legend: { displayMode: "table", placement: "bottom", calcs: ["lastNotNull", "max"] },
            tooltip: { mode: "multi" },
          },
    targets: queries.map(([expression, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr: writeOut(expression),
      legendFormat,
    })),
  };
}

/** @param {string} expression */
function writeOut(expression) {
  return expression
    .replaceAll("$rate", "$__rate_interval")
    .replaceAll(/(?<=[{,])J(?=[,}])/g, 'job=~"$job"')
    .replaceAll(/(?<=[{,])P(?=[,}])/g, 'policy=~"$policy"');
}
