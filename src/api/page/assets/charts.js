// The charts. They are pictures: what they show stands in the figures and the table as well.

/* global uPlot */

const charts = [];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** A chart in the element; `series` are lines with key, name, colour, dash and the like. */
export class Chart {
  #element;
  #legend;
  #series;
  #unit;
  #height;
  #plot;
  #data;
  #top = 1;

  constructor(element, { series, unit, height, least }) {
    this.#element = element;
    this.#legend = element.parentElement.querySelector(".legend");
    this.#series = series;
    this.#unit = unit;
    this.#height = height;
    this.#top = least;
    this.least = least;
    element.setAttribute("role", "img");
    new ResizeObserver(() => this.#resize()).observe(element);
    for (const { key } of series) {
      const entry = document.createElement("span");
      entry.dataset.series = key;
      this.#legend.append(entry);
    }
    charts.push(this);
  }

  /** Shows times and one column per series. */
  show(times, columns) {
    this.#data = [times, ...columns];
    const known = columns.flat().filter((value) => value !== null);
    this.#top = niceTop(Math.max(this.least, ...known));
    if (this.#plot === undefined) this.draw();
    else this.#plot.setData(this.#data);
    this.#tell(columns);
  }

  /** Draws anew, as in other colours. */
  draw() {
    if (this.#data === undefined) return;
    this.#plot?.destroy();
    this.#plot = new uPlot(this.#options(), this.#data, this.#element);
  }

  #resize() {
    const width = this.#element.clientWidth;
    if (this.#plot !== undefined && width > 0 && width !== this.#plot.width) {
      this.#plot.setSize({ width, height: this.#height });
    }
  }

  #tell(columns, place) {
    const said = this.#series.map(({ name }, index) => {
      const value = place === undefined ? newest(columns[index]) : columns[index][place];
      return `${name} ${shown(value)}${value === null ? "" : this.#unit}`;
    });
    said.forEach((text, index) => {
      this.#legend.children[index].textContent = text;
    });
    if (place === undefined) {
      const caption = this.#element.parentElement.querySelector("figcaption").firstChild.textContent;
      this.#element.setAttribute("aria-label", `${caption}, chart of the last minute. Now: ${said.join(", ")}.`);
    }
  }

  #options() {
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid") }, font: "12px system-ui, sans-serif" };
    const last = () => this.#data[0].at(-1);
    return {
      width: Math.max(this.#element.clientWidth, 100),
      height: this.#height,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      padding: [8, 18, 0, 0],
      scales: { x: { time: false }, y: { range: () => [0, this.#top] } },
      axes: [
        { ...axis, size: 26, incrs: [15], values: (_, times) => times.map((at) => (at === last() ? "now" : `−${last() - at} s`)), splits: () => [60, 45, 30, 15, 0].map((ago) => last() - ago).filter((at) => at >= this.#data[0][0]) },
        { ...axis, size: 46, space: 24, values: (_, values) => values.map(shown) },
      ],
      series: [{}, ...this.#series.map((line) => this.#line(line))],
      hooks: { setCursor: [(plot) => this.#tell(this.#data.slice(1), plot.cursor.idx ?? undefined)] },
    };
  }

  #line({ stroke, fill, dash, width, dots }) {
    return {
      stroke: colour(stroke),
      fill: fill && colour(fill),
      dash,
      width: width ?? 2,
      // A value between seconds without any has no line.
      points: { show: dots ?? false, size: 5, fill: colour(stroke) },
      paths: uPlot.paths.stepped({ align: -1 }),
      spanGaps: false,
    };
  }
}

const newest = (column) => column.findLast((value) => value !== null) ?? null;

/** A number for people. */
export function shown(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 10000) return `${(value / 1000).toFixed(value < 100000 ? 1 : 0)}k`;
  if (value >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return value.toFixed(1);
}

/** A little above the highest value, at a round number. */
function niceTop(highest) {
  const wanted = highest * 1.1;
  const step = 10 ** Math.floor(Math.log10(wanted));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((times) => times * step).find((top) => top >= wanted);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.draw()));
