// Axes: from `low` to `high`, `share` gives the position of a value from 0 to 1, `ticks` are {value, text}, as in charts.py.

const TICKS = 6;

/** 1, 2 or 5 times a power of ten, so that an extent has about TICKS of them. */
function roundStep(extent, least) {
  const wanted = Math.max(extent / TICKS, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  return power * [1, 2, 5, 10].find((factor) => power * factor >= wanted * (1 - 1e-9));
}

function linearAxis(low, high, ticks) {
  return { low, high, ticks, share: (value) => (value - low) / (high - low) };
}

/** An axis of scores that begins and ends on a tick. Infinite scores have no place on it; null if all are infinite. */
function scoreAxis(scores) {
  let low = Infinity;
  let high = -Infinity;
  for (const score of scores) {
    if (!Number.isFinite(score)) continue;
    if (score < low) low = score;
    if (score > high) high = score;
  }
  if (low > high) return null;
  if (high - low < 1e-9) [low, high] = [low - 0.01, high + 0.01];
  const step = roundStep(high - low, 1e-9);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const [first, last] = [Math.floor(+(low / step).toFixed(6)), Math.ceil(+(high / step).toFixed(6))];
  const ticks = Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
  return linearAxis(ticks[0], ticks.at(-1), ticks.map((value) => ({ value, text: value.toFixed(decimals) })));
}

function frameAxis(first, last) {
  if (last <= first) return linearAxis(first - 1, first + 1, [{ value: first, text: String(first) }]);
  const step = Math.round(roundStep(Math.max(1, last - first), 1));
  const ticks = [];
  for (let value = Math.ceil(first / step) * step; value <= last; value += step) ticks.push({ value, text: String(value) });
  return linearAxis(first, last, ticks);
}

/** A logarithmic axis of bit rates, with ticks at 1, 2 and 5 times powers of ten. */
function rateAxis(rates) {
  const [low, high] = [Math.min(...rates) / 1.1, Math.max(...rates) * 1.1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    for (const factor of high / low > 10000 ? [1] : [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (low <= value && value <= high) ticks.push({ value, text: String(+value.toPrecision(1)) });
    }
  }
  if (!ticks.length) ticks.push({ value: Math.sqrt(low * high), text: Math.sqrt(low * high).toPrecision(3) });
  return { low, high, ticks, share: (value) => Math.log(value / low) / Math.log(high / low) };
}
