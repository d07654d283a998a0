"use strict";
// The page works without this: then there is a plain table of the first rows. With it, rows are made
// from the data when they are seen, and can be searched, sorted, filtered, compared and downloaded.
// Text from outside only ever becomes text: there is no innerHTML here.

// ---- Elements and numbers: as content.py writes them ----

const SVG = "http://www.w3.org/2000/svg";
const THIN = "\u202f";

function element(name, attributes = {}, ...children) {
  const drawn = ["svg", "line", "circle", "path"].includes(name);
  const made = drawn ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function written(value, decimals) {
  if (value === null || value === undefined) return "";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Math.abs(value) >= 1e9) return significant(value);
  let text = Math.abs(value).toFixed(decimals);
  const sign = value < 0 && Number(text) ? "−" : "";
  const [whole, rest] = text.split(".");
  text = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return sign + text + (rest ? "." + rest : "");
}

function significant(value, digits = 3) {
  if (!value) return "0";
  let power = Math.floor(Math.log10(Math.abs(value)));
  const shown = value.toExponential(digits - 1);
  power = Number(shown.split("e")[1]);
  const text = power < -4 || power >= digits
    ? shown.replace(/e([+-])(\d)$/, "e$10$2")
    : value.toFixed(digits - 1 - power);
  return text.replaceAll("-", "−");
}

function amount(value) {
  if (value === null || value === undefined) return "";
  if (Math.abs(value) >= 1e9 || (value && Math.abs(value) < 0.1)) return significant(value, 4);
  return written(value, Number.isInteger(value) ? 0 : 2);
}

function percent(value, decimals = 0) {
  const least = 10 ** -decimals;
  if (value > 0 && 100 * value <= least / 2) return "<" + least;
  if (value < 1 && 100 * value >= 100 - least / 2) return ">" + (100 - least);
  return (100 * value).toFixed(decimals);
}

const inPercent = (level) => Number((100 * level).toPrecision(6)); // 57, and not 56.99999999999999
const share = (part) => `${Number((100 * part).toFixed(3))}%`;
const named = (name) => (name.trim() ? name : "(no name)");
const bdi = (name) => element("bdi", { class: name.trim() ? null : "unnamed" }, named(name));

// Where a phone lays rows out as blocks, they are still rows to those who listen.
const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
function roled(made) {
  const header = made.tagName === "TH" && (made.scope === "col" ? "columnheader" : "rowheader");
  made.setAttribute("role", header || ROLES[made.tagName]);
  return made;
}

// ---- State in the address: #sort=games&order=descending&find=ann, of the view that is shown ----

const fields = ["view", "find", "group", "least", "sort", "order", "more", "one", "two"];

function stateOfAddress() {
  const text = location.hash.slice(1);
  const given = new URLSearchParams(text.includes("=") ? text : "");
  const found = Object.fromEntries(fields.map((field) => [field, given.get(field) ?? ""]));
  if (!/^\d+$/.test(found.least)) found.least = ""; // anybody can write an address
  if (!/^(a|de)scending$/.test(found.order)) found.order = "";
  return found;
}

function intoAddress(state) {
  const given = new URLSearchParams();
  for (const field of fields) if (state[field]) given.set(field, state[field]);
  const text = given.toString();
  history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
}

// ---- The ranking ----

const CHUNK = 50; // rows that are made at once
const FEW = 300; // up to so many are made without waiting to be seen
const ALWAYS = ["rank", "item", "track", "rating"]; // columns that are seen at any width
const words = new Intl.Collator(undefined, { numeric: true });

class Ranking {
  constructor(view, panel) {
    this.view = view;
    this.columns = view.columns;
    this.columns.rating ??= this.columns.log_worth;
    this.size = this.columns.name.length;
    this.provisional = new Set(this.columns.provisional);
    this.table = panel.querySelector("table.main");
    this.headings = [...this.table.tHead.rows[0].cells];
    this.keys = this.headings.map((heading) => heading.dataset.key ?? heading.className);
    this.rowHeight = 40;
    this.place = new Map();
    this.columns.name.forEach((name, row) => { if (!this.place.has(name)) this.place.set(name, row); });
    this.observer = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: "600px" });
    for (const each of [this.table, this.table.tHead, this.table.tHead.rows[0], ...this.headings]) roled(each);
  }

  value(key, row) {
    if (key === "rank") return row + 1;
    if (key === "share") {
      const [wins, ties, losses] = ["wins", "ties", "losses"].map((name) => this.columns[name][row]);
      return wins === null ? null : (wins + ties / 2) / (wins + ties + losses || 1);
    }
    return this.columns[key]?.[row] ?? null;
  }

  // Numbers of the rows that a state shows, in its order.
  chosen(state) {
    const find = state.find.trim().toLowerCase();
    const least = Number(state.least) || 0;
    const { name, group, games } = this.columns;
    const rows = [];
    for (let row = 0; row < this.size; row += 1) {
      if (find && !name[row].toLowerCase().includes(find) && !group?.[row].toLowerCase().includes(find)) continue;
      if (state.group && group?.[row] !== state.group) continue;
      if (least && !(games?.[row] >= least)) continue;
      rows.push(row);
    }
    const key = this.keys.includes(state.sort) ? state.sort : "rank";
    const sign = state.order === "descending" ? -1 : 1;
    const texts = key === "name" || key === "group";
    const values = rows.map((row) => [this.value(key, row), row]);
    values.sort(([a, i], [b, j]) => {
      if (a === null || b === null) return (a === null) - (b === null) || i - j; // missing ones last
      return sign * (texts ? words.compare(a, b) : a - b) || i - j;
    });
    return values.map(([, row]) => row);
  }

  show(state) {
    this.rows = this.chosen(state);
    const key = this.keys.includes(state.sort) ? state.sort : "rank";
    const order = state.order || "ascending";
    this.banded = key === "rank" && order === "ascending" && this.columns.tier.length > 0;
    for (const heading of this.headings) {
      if (heading.dataset.key === key) heading.setAttribute("aria-sort", order);
      else heading.removeAttribute("aria-sort");
    }
    this.table.classList.toggle("all-columns", Boolean(state.more));
    this.observer.disconnect();
    const bodies = [];
    for (let from = 0; from < this.rows.length; from += CHUNK) {
      const body = roled(element("tbody"));
      body.from = from;
      bodies.push(body);
    }
    for (const body of [...this.table.tBodies]) body.remove();
    this.table.append(...bodies);
    this.lazy = this.rows.length > FEW;
    if (this.lazy) this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    else this.table.removeAttribute("aria-rowcount");
    for (const body of bodies) {
      if (this.lazy) { this.empty(body); this.observer.observe(body); } else this.fill(body);
    }
    if (this.lazy) this.fill(bodies[0]);
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.fill(target);
      else if (target.made && !target.contains(document.activeElement)) this.empty(target);
    }
  }

  fill(body) {
    if (body.made) return;
    body.made = true;
    const rows = [];
    this.rows.slice(body.from, body.from + CHUNK).forEach((row, place) => {
      if (this.startsTier(body.from + place)) rows.push(this.band(row));
      rows.push(this.row(row, body.from + place));
    });
    body.replaceChildren(...rows);
  }

  empty(body) {
    const many = Math.min(CHUNK, this.rows.length - body.from);
    if (body.made && body.offsetHeight) this.rowHeight = body.offsetHeight / many;
    body.made = false;
    const space = element("td");
    space.style.height = `${many * this.rowHeight}px`;
    body.replaceChildren(element("tr", { class: "space", "aria-hidden": "true" }, space));
  }

  fillAll() {
    for (const body of this.table.tBodies) { this.observer.unobserve(body); this.fill(body); }
  }

  startsTier(place) {
    const { tier } = this.columns;
    return this.banded && (place === 0 || tier[this.rows[place]] !== tier[this.rows[place - 1]]);
  }

  band(row) {
    const { tier, cut_below: cuts } = this.columns;
    const heading = element("th", { colspan: ALWAYS.length, scope: "rowgroup" }, `Tier ${tier[row]}`);
    if (row && cuts.length && tier[row] !== tier[row - 1]) {
      heading.append(" ", element("span", { class: "aside" }, `cut with probability ${percent(cuts[row - 1])}${THIN}%`));
    }
    const others = this.headings.map((each) => each.className).filter((kind) => !ALWAYS.includes(kind));
    return roled(element("tr", { class: "band" }, roled(heading), ...others.map((kind) => roled(element("td", { class: kind })))));
  }

  row(row, place) {
    const cells = this.keys.map((key, at) => this.cell(key, this.headings[at].className, row));
    const made = { class: this.provisional.has(row) ? "provisional" : null };
    if (this.lazy) made["aria-rowindex"] = place + 2;
    return roled(element("tr", made, ...cells.map(roled)));
  }

  cell(key, kind, row) {
    const { name, link } = this.columns;
    if (key === "name") {
      const text = bdi(name[row]);
      const address = link?.[row];
      // The data were checked where the page was made; a link is nothing to be careless with.
      const linked = address && /^https?:\/\//i.test(address);
      return element("th", { scope: "row", class: "item" },
        linked ? element("a", { href: address, rel: "noopener nofollow" }, text) : text);
    }
    if (key === "track") return this.track(row);
    return element("td", { class: kind }, this.text(key, row));
  }

  text(key, row) {
    const { columns, view } = this;
    const value = this.value(key, row);
    if (key === "rank" || key === "tier") return written(value, 0);
    if (key === "group") return value ?? "";
    if (key === "rank_low") {
      const high = columns.rank_high[row];
      return value === null ? "" : written(value, 0) + (value === high ? "" : `–${written(high, 0)}`);
    }
    if (key === "rating") return written(value, view.decimals);
    if (key === "low") return this.ends(row);
    if (key === "games") return amount(value);
    if (key === "share") return this.record(row);
    if (key === "standard_error") return written(value, view.error_decimals);
    if (key === "worth") return significant(100 * value);
    if (key === "expected_rank") return written(value, 1);
    return value === null ? "" : percent(value, 1);
  }

  ends(row) {
    const [low, high] = [this.columns.low[row], this.columns.high[row]];
    const { decimals } = this.view;
    return low === null ? "" : `${written(low, decimals)} to ${written(high, decimals)}`;
  }

  record(row) {
    return ["wins", "ties", "losses"].map((name) => this.columns[name][row])
      .filter((count) => count !== null).map(amount).join("–");
  }

  track(row) {
    const { columns, view } = this;
    const [least, most] = view.axis;
    const at = (value) => share(Math.min(Math.max((value - least) / (most - least), 0), 1));
    const [low, high, value] = [columns.low[row], columns.high[row], columns.rating[row]];
    const ends = this.ends(row);
    const said = `${named(columns.name[row])}: ${view.rating} ${written(value, view.decimals)}`
      + (ends ? `, ${inPercent(view.level)}${THIN}% interval ${ends}` : "");
    const drawing = element("svg", { role: "img", "aria-label": said });
    if (low !== null) {
      drawing.append(element("line", { class: "whisker", x1: at(low), x2: at(high), y1: "50%", y2: "50%" }));
      if (low < least) drawing.append(arrow(at(low), "M6-5 0 0 6 5"));
      if (high > most) drawing.append(arrow(at(high), "M-6-5 0 0-6 5"));
    }
    drawing.append(element("circle", { class: "dot", cx: at(value), cy: "50%", r: 5 }));
    const cell = element("td", { class: "track" }, drawing);
    const games = columns.games?.[row] ?? null;
    if (games !== null) {
      const seen = games === 1 ? view.seen.slice(0, -1) : view.seen;
      const counted = `${amount(games)} ${seen}`;
      cell.append(element("span", { class: "under" }, columns.wins ? `${counted}: ${this.record(row)}` : counted));
    }
    return cell;
  }
}

const arrow = (x, d) => element("svg", { class: "beyond", x, y: "50%" }, element("path", { d }));

// ---- What is shown, as a file ----

const FORMULA = /^(?![+-]?[0-9]+(\.[0-9]+)?$)[=+\-@＝＋－＠\u0000-\u001f]/;

// As tables.py writes CSV: text that a spreadsheet would take for a formula gets ' in front.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : value > 0 ? "inf" : "-inf";
  const formula = FORMULA.test(value);
  if (!formula && !/[,"\r\n]/.test(value)) return value;
  return `"${(formula ? "'" + value : value).replaceAll('"', '""')}"`;
}

function records(ranking) {
  const { columns, view } = ranking;
  const rated = columns.rating !== columns.log_worth;
  return ranking.rows.map((row) => {
    const record = { rank: row + 1, item: columns.name[row] };
    if (columns.group) record.group = columns.group[row];
    record.log_worth = columns.log_worth[row];
    if (rated) record[view.rating] = columns.rating[row];
    for (const key of ["low", "high", "standard_error", "worth", "rank_low", "rank_high", "expected_rank", "top_k", "games", "wins", "ties", "losses"]) {
      if (columns[key]) record[key] = columns[key][row];
    }
    if (columns.tier.length) record.tier = columns.tier[row];
    record.provisional = ranking.provisional.has(row);
    return record;
  });
}

function download(ranking, kind) {
  const shown = records(ranking);
  const heads = Object.keys(shown[0] ?? { rank: 0, item: "" });
  const lines = [heads, ...shown.map((record) => heads.map((head) => record[head]))];
  const text = kind === "csv"
    ? lines.map((line) => line.map((cell) => csvCell(typeof cell === "boolean" ? String(cell) : cell)).join(",") + "\n").join("")
    : JSON.stringify({ title: data.title, name: ranking.view.name, level: ranking.view.level, results: shown }, null, 1) + "\n";
  const type = kind === "csv" ? "text/csv" : "application/json";
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = element("a", { href: address, download: `ranking.${kind}`, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// ---- Controls above the ranking ----

let controlNumber = 0;
function labelled(text, control, kind = "") {
  control.id ||= `control-${(controlNumber += 1)}`;
  return element("div", { class: `control ${kind}` }, element("label", { for: control.id }, text), control);
}

function select(options, value) {
  const made = element("select");
  for (const [key, text] of options) made.append(element("option", { value: key }, text));
  made.value = value;
  return made;
}

function controlsOf(ranking, state, changed) {
  const { columns, view } = ranking;
  const find = element("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "Name" });
  const count = element("p", { class: "count aside", role: "status" });
  const controls = element("div", { class: "tools" }, labelled("Search", find, "grows"));
  find.addEventListener("input", () => changed({ find: find.value }));
  let group = null;
  if (columns.group) {
    const groups = [...new Set(columns.group)].filter(Boolean).sort(words.compare);
    group = select([["", "All"], ...groups.map((each) => [each, each])], state.group);
    group.addEventListener("change", () => changed({ group: group.value }));
    controls.append(labelled("Group", group));
  }
  let least = null;
  if (columns.games && new Set(columns.games).size > 1) {
    least = element("input", { type: "number", min: 0, step: 1, inputmode: "numeric", placeholder: "0" });
    least.addEventListener("input", () => changed({ least: least.value }));
    controls.append(labelled(`Least ${view.seen}`, least));
  }
  const sortable = ranking.headings.filter((heading) => heading.dataset.key);
  const sort = select(sortable.map((heading) => [heading.dataset.key, heading.textContent.trim()]), "rank");
  sort.addEventListener("change", () => {
    const heading = sortable.find((each) => each.dataset.key === sort.value);
    changed({ sort: sort.value, order: heading.dataset.first });
  });
  controls.append(labelled("Sort by", sort, "narrow"));
  const more = element("button", { type: "button", class: "wide-only" }, "More columns");
  more.addEventListener("click", () => changed({ more: ranking.state.more ? "" : "yes" }));
  const csv = element("button", { type: "button", title: "Download what is shown as CSV" }, "CSV");
  csv.addEventListener("click", () => download(ranking, "csv"));
  const json = element("button", { type: "button", title: "Download what is shown as JSON" }, "JSON");
  json.addEventListener("click", () => download(ranking, "json"));
  controls.append(element("div", { class: "buttons" }, more, csv, json));

  const update = (now) => {
    for (const [control, field] of [[find, "find"], [group, "group"], [least, "least"]]) {
      if (control && control.value !== now[field]) control.value = now[field];
    }
    sort.value = now.sort || "rank";
    more.setAttribute("aria-pressed", now.more ? "true" : "false");
    const shown = ranking.rows.length;
    const all = written(ranking.size, 0);
    count.textContent = shown === ranking.size ? `${all} items` : shown ? `${written(shown, 0)} of ${all} items` : `No item of ${all} is like this: change the search or the filters.`;
  };
  return { parts: [controls, count], update };
}

// Headings become buttons here, and not in the markup: without scripts there is nothing to press.
function sortButtons(ranking, changed) {
  for (const heading of ranking.headings) {
    const { key, first } = heading.dataset;
    if (!key) continue;
    const button = element("button", { type: "button" });
    button.append(...heading.childNodes);
    button.addEventListener("click", () => {
      const now = heading.getAttribute("aria-sort");
      const other = { ascending: "descending", descending: "ascending" };
      changed({ sort: key, order: now ? other[now] : first });
    });
    heading.append(button);
  }
}

// ---- Pick two ----

class Pairs {
  constructor(ranking) {
    this.ranking = ranking;
    this.model = ranking.view.pairs;
    this.met = new Map();
    const { met, exact, errors } = this.model;
    met?.first.forEach((one, at) => {
      this.met.set(one * ranking.size + met.second[at], [met.wins[at], met.ties[at], met.losses[at]]);
    });
    if (exact) {
      const bytes = Uint8Array.from(atob(errors), (letter) => letter.charCodeAt(0));
      this.steps = new DataView(bytes.buffer);
    }
  }

  // Wins, ties and losses of the first; null where the page does not know.
  games(one, two) {
    const [a, b] = one < two ? [one, two] : [two, one];
    if (this.model.among === undefined || b >= this.model.among) return null;
    const found = this.met.get(a * this.ranking.size + b) ?? [0, 0, 0];
    return one < two ? found : [...found].reverse();
  }

  // The variance of w_i − w_j: of its own for the first rows, else by quasi-variances.
  variance(one, two) {
    const { exact, least, ratio, quasi_variances: quasi } = this.model;
    const [a, b] = one < two ? [one, two] : [two, one];
    if (b < exact) {
      const at = a * exact - (a * (a + 1)) / 2 + b - a - 1;
      return (least * Math.exp((ratio * this.steps.getUint16(2 * at, true)) / 65535)) ** 2;
    }
    return quasi ? Math.max(quasi[a] + quasi[b], 0) : null;
  }

  // [win, tie, loss], each { p, low, high }: by the normal approximation of the log-odds of each.
  chances(one, two) {
    const { kind, tie: t, tie_variance: ofTie, tie_covariance: withTie, z } = this.model;
    const worths = this.ranking.columns.log_worth;
    const d = worths[one] - worths[two];
    const variance = this.variance(one, two);
    const covariance = withTie ? withTie[one] - withTie[two] : 0;
    const logistic = (x) => 1 / (1 + Math.exp(-x));
    // Of log-odds x with slopes (a, b) along d and t: var = a² var(d) + 2 a b cov(d, t) + b² var(t).
    const with_ends = (x, a, b) => {
      const p = logistic(x);
      if (variance === null) return { p, low: null, high: null };
      const margin = z * Math.sqrt(Math.max(a * a * variance + 2 * a * b * covariance + b * b * ofTie, 0));
      return { p, low: logistic(x - margin), high: logistic(x + margin) };
    };
    if (kind === "davidson") {
      // odds of a win: e^(d/2) / (e^(−d/2) + ν), ν = e^t
      const side = (d) => {
        const beside = Math.exp(-d / 2) + Math.exp(t);
        const q = Math.exp(-d / 2) / beside;
        return [d / 2 - Math.log(beside), 0.5 + 0.5 * q, -(1 - q)];
      };
      const [win, a, b] = side(d);
      const [loss, c, e] = side(-d);
      const decided = Math.exp(d / 2) + Math.exp(-d / 2);
      const slope = -0.5 * (Math.exp(d / 2) - Math.exp(-d / 2)) / decided;
      return [with_ends(win, a, b), with_ends(t - Math.log(decided), slope, 1), with_ends(loss, -c, e)];
    }
    if (kind === "rao-kupper") {
      // odds of a win: e^d / θ, θ = 1 + e^t
      const log = Math.log1p(Math.exp(t));
      const along = -logistic(t);
      const [p, q] = [logistic(d - log), logistic(-d - log)];
      const tie = 1 - p - q;
      // tie = (θ² − 1) e^d / ((e^d + θ)(1 + θ e^d)); slopes of its log-odds are those of log tie / (1 − tie)
      const ofD = (-p * (1 - p) + q * (1 - q)) / (tie * (1 - tie));
      const ofT = (-along * (p * (1 - p) + q * (1 - q))) / (tie * (1 - tie));
      return [with_ends(d - log, 1, along), with_ends(Math.log(tie / (1 - tie)), ofD, ofT), with_ends(-d - log, -1, along)];
    }
    return [with_ends(d, 1, 0), null, with_ends(-d, -1, 0)];
  }
}

function counted(many, seen) {
  return `${amount(many)} ${many === 1 ? seen.slice(0, -1) : seen}`;
}

function chanceText({ p, low, high }, level) {
  const ends = low === null ? "" : `, ${inPercent(level)}${THIN}% interval ${percent(low)} to ${percent(high)}${THIN}%`;
  return `${percent(p)}${THIN}%${ends}`;
}

function pickOf(ranking, pairs, panel, changed) {
  const { columns, view } = ranking;
  const place = panel.querySelector(".pick");
  const list = element("datalist", { id: `${view.prefix}names` });
  for (const name of columns.name) list.append(element("option", { value: name }));
  const inputs = ["One", "The other"].map((text, at) => {
    const input = element("input", { list: list.id, autocomplete: "off", spellcheck: "false" });
    input.addEventListener("change", () => changed({ [at ? "two" : "one"]: input.value }));
    input.addEventListener("input", () => { if (ranking.place.has(input.value)) changed({ [at ? "two" : "one"]: input.value }); });
    return [input, labelled(text, input, "grows")];
  });
  const swap = element("button", { type: "button" }, "Swap");
  const said = element("div", { class: "said", role: "status" });
  swap.addEventListener("click", () => changed({ one: inputs[1][0].value, two: inputs[0][0].value }));
  place.append(element("div", { class: "tools" }, inputs[0][1], inputs[1][1], element("div", { class: "buttons" }, swap)), list, said);

  const update = (state) => {
    const names = [state.one || columns.name[0], state.two || columns.name[1]];
    names.forEach((name, at) => { if (inputs[at][0].value !== name && document.activeElement !== inputs[at][0]) inputs[at][0].value = name; });
    const [one, two] = names.map((name) => ranking.place.get(name));
    if (one === undefined || two === undefined) {
      said.replaceChildren(element("p", {}, `There is no item “${named(names[one === undefined ? 0 : 1])}”: choose one from the list.`));
      return;
    }
    if (one === two) {
      said.replaceChildren(element("p", {}, "Both are the same item: choose two."));
      return;
    }
    const [a, b] = [one, two].map((row) => bdi(columns.name[row]));
    const [win, tie, loss] = pairs.chances(one, two);
    const verb = view.seen === "games" ? "beats" : "stands above";
    const parts = [["win", win], ["tie", tie], ["loss", loss]].filter(([, chance]) => chance);
    const bar = element("div", { class: "outcomes", "aria-hidden": "true" });
    for (const [kind, { p }] of parts) {
      const part = element("span", { class: kind }, p >= 0.08 ? `${percent(p)}${THIN}%` : "");
      part.style.flexGrow = p;
      bar.append(part);
    }
    const lines = [
      element("p", { class: "main-chance" }, a, ` ${verb} `, b, " with probability ", element("b", {}, chanceText(win, view.level)), "."),
      bar,
    ];
    if (tie) {
      lines.push(element("p", {}, `A tie: ${chanceText(tie, view.level)}. `, b.cloneNode(true), ` ${verb} `, a.cloneNode(true), `: ${chanceText(loss, view.level)}.`));
    }
    const games = pairs.games(one, two);
    if (games) {
      const [wins, ties, losses] = games;
      const all = wins + ties + losses;
      const met = all
        ? [`They met in ${counted(all, view.seen)}: `, a.cloneNode(true), ` ${view.seen === "games" ? "won" : "stood above"} ${amount(wins)}, ${amount(ties)} tied, `, b.cloneNode(true), ` ${amount(losses)}.`]
        : [`They never met: this follows from ${view.seen} with others.`];
      lines.push(element("p", {}, ...met));
    }
    const { exact } = pairs.model;
    const about = Math.max(one, two) >= exact && win.low !== null ? ` Beyond rank ${written(exact, 0)} intervals are approximate, by quasi-variances.` : "";
    lines.push(element("p", { class: "aside" }, pairs.model.tie_says + about));
    said.replaceChildren(...lines);
  };
  panel.querySelector(`#${view.prefix}pick`).hidden = false;
  panel.querySelector(`.contents a[href="#${view.prefix}pick"]`).hidden = false;
  return update;
}

// ---- The matrix: one cell at a time has the focus, and says what was seen of its two ----

function matrixOf(ranking, pairs, panel, changed) {
  const table = panel.querySelector("table.pairs");
  if (!table) return;
  const { columns, view } = ranking;
  const section = table.closest("section");
  for (const each of section.querySelectorAll(".scripted")) each.hidden = false;
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", "Probability that the row stands above the column");
  const hint = element("div", { class: "hint", id: `${view.prefix}hint`, role: "tooltip", hidden: true });
  section.append(hint);
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1));
  const where = (cell) => [cell.parentElement.rowIndex - 1, cell.cellIndex - 1];
  const text = (one, two) => {
    const [a, b] = [columns.name[one], columns.name[two]].map(named);
    const found = `${a} above ${b}: ${rows[one][two].textContent}${THIN}% by the model`;
    const games = pairs?.games(one, two);
    if (!games) return found;
    const [wins, ties, losses] = games.map(amount);
    return games.every((count) => !count) ? `${found}; they never met` : `${found}; seen ${wins} won, ${ties} tied, ${losses} lost`;
  };
  const show = (cell) => {
    const [one, two] = where(cell);
    hint.hidden = one === two;
    if (one === two) return;
    hint.textContent = text(one, two);
    const [box, around] = [cell.getBoundingClientRect(), section.getBoundingClientRect()];
    const left = box.left - around.left + box.width / 2 - hint.offsetWidth / 2;
    hint.style.left = `${Math.min(Math.max(left, 4), around.width - hint.offsetWidth - 4)}px`;
    hint.style.top = `${box.top - around.top - hint.offsetHeight - 6}px`;
  };
  for (const cell of rows.flat()) {
    cell.tabIndex = -1;
    const [one, two] = where(cell);
    if (one !== two) cell.setAttribute("aria-label", text(one, two));
  }
  const cells = table.tBodies[0];
  if (rows[0].length > 1) rows[0][1].tabIndex = 0;
  const cellOf = (event) => event.target.closest("td");
  cells.addEventListener("mouseover", (event) => { if (cellOf(event)) show(cellOf(event)); });
  cells.addEventListener("mouseout", () => { hint.hidden = true; });
  cells.addEventListener("focusout", () => { hint.hidden = true; });
  cells.addEventListener("focusin", (event) => {
    const cell = cellOf(event);
    if (!cell) return;
    for (const other of cells.querySelectorAll("td[tabindex='0']")) other.tabIndex = -1;
    cell.tabIndex = 0;
    show(cell);
  });
  const pick = (cell) => {
    const [one, two] = where(cell);
    if (one !== two && pairs) changed({ one: columns.name[one], two: columns.name[two] });
  };
  cells.addEventListener("click", (event) => { if (cellOf(event)) { pick(cellOf(event)); show(cellOf(event)); } });
  cells.addEventListener("keydown", (event) => {
    const cell = cellOf(event);
    if (!cell) return;
    const [one, two] = where(cell);
    const last = rows.length - 1;
    const to = {
      ArrowUp: [one - 1, two], ArrowDown: [one + 1, two], ArrowLeft: [one, two - 1],
      ArrowRight: [one, two + 1], Home: [one, 0], End: [one, last],
    }[event.key];
    if (to) {
      event.preventDefault();
      rows[to[0]]?.[to[1]]?.focus();
    } else if (event.key === "Enter") pick(cell);
    else if (event.key === "Escape") hint.hidden = true;
  });
}

// ---- Through time: which curves are drawn ----

function curvesOf(panel) {
  for (const box of panel.querySelectorAll("input[data-curve]")) {
    box.disabled = false;
    box.addEventListener("change", () => {
      panel.querySelector(`.curve-${box.dataset.curve}`).toggleAttribute("hidden", !box.checked);
      box.closest("li").classList.toggle("off", !box.checked);
    });
  }
}

// ---- One view, and several as tabs ----

const data = JSON.parse(document.getElementById("page-data").textContent);
const state = stateOfAddress();
const panels = [...document.querySelectorAll(".view")];
const views = panels.map((panel, number) => {
  const view = data.views[number];
  const ranking = new Ranking(view, panel);
  ranking.state = { ...state };
  const pairs = view.pairs && ranking.size > 1 ? new Pairs(ranking) : null;
  const apart = new Set(["find", "group", "least", "sort", "order", "more"]);
  const changed = (changes) => {
    Object.assign(state, changes);
    ranking.state = { ...state };
    intoAddress(state);
    if (Object.keys(changes).some((field) => apart.has(field))) ranking.show(state);
    controls.update(state);
    pick?.(state);
  };
  const controls = controlsOf(ranking, state, changed);
  panel.querySelector(".controls").append(...controls.parts);
  sortButtons(ranking, changed);
  const pick = pairs && panel.querySelector(".pick") ? pickOf(ranking, pairs, panel, changed) : null;
  matrixOf(ranking, pairs, panel, changed);
  curvesOf(panel);
  const show = () => {
    ranking.state = { ...state };
    ranking.show(state);
    controls.update(state);
    pick?.(state);
  };
  return { ranking, show, panel };
});
for (const each of document.querySelectorAll(".unscripted")) each.remove();

const tabs = [...document.querySelectorAll(".tabs a")];
function showView(number, focus = false) {
  views.forEach(({ panel }, each) => { panel.hidden = each !== number; });
  tabs.forEach((tab, each) => {
    tab.setAttribute("aria-selected", each === number ? "true" : "false");
    tab.tabIndex = each === number ? 0 : -1;
  });
  if (focus) tabs[number].focus();
  views[number].show();
}
function chosenView() {
  const found = data.views.findIndex(({ name }) => name === state.view);
  return found < 0 ? 0 : found;
}
if (tabs.length) {
  const list = document.querySelector(".tabs");
  list.setAttribute("role", "tablist");
  const choose = (number, focus) => {
    // A search may go on in another category; who is picked may not be there.
    Object.assign(state, { view: data.views[number].name, group: "", one: "", two: "" });
    intoAddress(state);
    showView(number, focus);
  };
  tabs.forEach((tab, number) => {
    tab.setAttribute("role", "tab");
    tab.id = `tab-${number + 1}`;
    tab.setAttribute("aria-controls", panels[number].id);
    panels[number].setAttribute("role", "tabpanel");
    panels[number].setAttribute("aria-labelledby", tab.id);
    panels[number].querySelector(".view-name").hidden = true;
    tab.addEventListener("click", (event) => { event.preventDefault(); choose(number, true); });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const to = { Home: 0, End: tabs.length - 1 }[event.key] ?? (step && (number + step + tabs.length) % tabs.length);
      if (to === undefined) return;
      event.preventDefault();
      choose(to, true);
    });
  });
}
showView(chosenView());

addEventListener("hashchange", () => {
  if (location.hash && !location.hash.includes("=")) return; // a section of the page
  Object.assign(state, stateOfAddress());
  showView(chosenView());
});

// On paper nothing unfolds, and nothing is made when it is seen.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  for (const { ranking, panel } of views) if (!panel.hidden) ranking.fillAll();
});
