// A client of local privacy for web pages and phones, without dependencies: it reads the JSON of a round and writes the
// same records as noisette.local.wire, drawing the same coins in the same order.
//
//     import { record } from "./client.js";
//     const bytes = record(await (await fetch("round.json")).json(), value);     // value: 0, 1, ... domain-1
//     await fetch("/reports", { method: "POST", body: bytes });                  // to send again, send the same bytes
//
// A value is a whole number; a number within the bounds for means and distributions; a list of answers, 0 or 1, for
// SplitQueries; [east, north] in metres for PlanarLaplace. PrivUnitG is missing: its candidates need a table of floats.
//
// Coins come from Web Crypto. Probabilities are exact: whole numbers as BigInt, no floating point, no Math.random.
// Floats only say where a number lies on its lattice, before any coin is drawn.
// Each call of `record` draws new noise and costs epsilon again, so keep the record of a value that you report again.
// For Rappor, keep `permanent(round, value)` instead, and send `instantaneous(round, kept)` each time.

/** Coins from bytes; `draw(n)` returns n uniform bytes. Tests pass fixed ones. */
export class Coins {
  constructor(draw = (n) => globalThis.crypto.getRandomValues(new Uint8Array(n))) {
    this.draw = draw;
  }
  bits(count) {
    const size = (count + 7) >> 3;
    let number = 0n;
    if (size) this.draw(size).forEach((byte, i) => { number |= BigInt(byte) << BigInt(8 * i); });
    return number >> BigInt(8 * size - count);
  }
  below(n) {
    const count = bitLength(n - 1n);
    for (;;) {
      const value = this.bits(count);
      if (value < n) return value;
    }
  }
  flip(numerator, denominator) {
    return this.below(denominator) < numerator;
  }
}

const FINE = 1n << 30n; // parts of a step
const bitLength = (n) => (n ? n.toString(2).length : 0);
const mod = (a, n) => ((a % n) + n) % n;

function fraction(text) {
  const [numerator, denominator = "1"] = text.split("/");
  return [BigInt(numerator), BigInt(denominator)];
}

function reduced(numerator, denominator) {
  let [a, b] = [numerator, denominator];
  while (b) [a, b] = [b, a % b];
  return [numerator / a, denominator / a];
}

/** True with probability e^-g, 0 <= g <= 1: the first k for which a coin of g/k fails is odd. */
function unitExp(numerator, denominator, coins) {
  for (let k = 1n; ; k++) if (!coins.flip(numerator, denominator * k)) return k % 2n === 1n;
}

function bernoulliExp([numerator, denominator], coins) {
  for (; numerator > denominator; numerator -= denominator) if (!unitExp(1n, 1n, coins)) return false;
  return unitExp(numerator, denominator, coins);
}

/** True with probability 1/(1 + weight e^-g): the coin of randomized response. */
function logistic(g, [numerator, denominator], coins) {
  for (;;) {
    if (coins.flip(denominator, denominator + numerator)) return true;
    if (bernoulliExp(g, coins)) return false;
  }
}

/** A discrete Laplace number: P(z) is proportional to e^(-|z| s/t). */
function laplace([t, s], coins) {
  for (;;) {
    const negative = coins.flip(1n, 2n);
    let low = coins.below(t);
    while (!unitExp(low, t, coins)) low = coins.below(t);
    let high = 0n;
    while (unitExp(1n, 1n, coins)) high++;
    const z = (low + t * high) / s;
    if (!negative) return z;
    if (z) return -z;
  }
}

/** The largest whole number whose k-th power is at most n. */
function root(n, k) {
  let found = 0n;
  for (let bit = 1n << (BigInt(bitLength(n)) / k + 1n); bit; bit >>= 1n) if ((found | bit) ** k <= n) found |= bit;
  return found;
}

/** e^-x in units of 2^-bits, between two whole numbers: e^(x/2^m) by its series, m squares, and the inverse. */
function expBounds([numerator, denominator], bits) {
  let halvings = 0n;
  for (; numerator > denominator << halvings; halvings++);
  const places = bits + 64n + halvings;
  let [low, k] = [0n, 0n];
  for (let term = 1n << places; term; term = (term * numerator) / ((denominator << halvings) * k)) {
    [low, k] = [low + term, k + 1n];
  }
  let high = low + 2n * k + 8n;
  for (; halvings; halvings--) [low, high] = [(low * low) >> places, ((high * high) >> places) + 1n];
  return [(1n << (bits + places)) / high, (1n << (bits + places)) / low + 1n];
}

/** True with probability e^(-rate (|(a, b)| - 7/10 (|a| + |b|))): a uniform number is drawn as finely as it needs. */
function nearby([numerator, denominator], a, b, coins) {
  const far = 7n * ((a < 0n ? -a : a) + (b < 0n ? -b : b));
  for (let [prefix, known] = [0n, 0n]; ; ) {
    [prefix, known] = [(prefix << 64n) | coins.bits(64), known + 64n];
    const fine = known + 24n + BigInt(bitLength(numerator));
    const [length, all] = [root((a * a + b * b) << (2n * fine), 2n), 10n * denominator << fine];
    const loss = (distance) => [numerator * (10n * distance - (far << fine)), all];
    if ((prefix + 1n) << 8n <= expBounds(loss(length + 1n), known + 8n)[0]) return true;
    if (prefix << 8n >= expBounds(loss(length), known + 8n)[1]) return false;
  }
}

function otherThan(own, count, coins) {
  const other = coins.below(count - 1n);
  return other + (other >= own ? 1n : 0n);
}
function unary(own, domain, lie, ownBit, coins) {
  let bits = 0n;
  for (let v = 0n; v < domain; v++) {
    const one = v === own ? ownBit() : !logistic(lie, [1n, 1n], coins);
    if (one) bits |= 1n << v;
  }
  return [bits];
}

const PRIMES = [];
for (let n = 2; PRIMES.length < 64; n++) if (PRIMES.every((p) => n % p)) PRIMES.push(n);
const rootWord = (p, k) => Number(root(BigInt(p) << (32n * k), k) & 0xffffffffn);
const [START, ROUNDS] = [PRIMES.slice(0, 8).map((p) => rootWord(p, 2n)), PRIMES.map((p) => rootWord(p, 3n))];

/** The eight words of SHA-256 of an ASCII text of less than 56 characters. */
function sha256(text) {
  const bytes = [...text].map((character) => character.charCodeAt(0)).concat(128);
  const w = Array(16).fill(0);
  bytes.forEach((byte, i) => { w[i >> 2] |= byte << (24 - 8 * (i % 4)); });
  w[15] = 8 * text.length;
  const turn = (x, ...by) => by.reduce((sum, n) => sum ^ ((x >>> n) | (x << (32 - n))), 0);
  for (let i = 16; i < 64; i++) {
    const [a, b] = [w[i - 15], w[i - 2]];
    w.push((w[i - 16] + w[i - 7] + (turn(a, 7, 18) ^ (a >>> 3)) + (turn(b, 17, 19) ^ (b >>> 10))) | 0);
  }
  let s = START;
  for (let i = 0; i < 64; i++) {
    const [a, b, c, d, e, f, g, h] = s;
    const one = (h + turn(e, 6, 11, 25) + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
    s = [(one + turn(a, 2, 13, 22) + ((a & b) ^ (a & c) ^ (b & c))) | 0, a, b, c, (d + one) | 0, e, f, g];
  }
  return s.map((x, i) => (x + START[i]) >>> 0);
}

/** The bits that a value sets in a Bloom filter. */
function bloomBits(value, length, hashes) {
  const found = new Set();
  for (let turn = 0; ; turn++) {
    for (const word of sha256(`${value}/${turn}`)) {
      found.add(BigInt(word) % length);
      if (BigInt(found.size) === hashes) return found;
    }
  }
}

function coinBits(length, chance, coins) {
  let bits = 0n;
  for (let i = 0n; i < length; i++) if (coins.flip(...chance(i))) bits |= 1n << i;
  return bits;
}

function permanentBits(own, { f, length, hashes }, coins) {
  const lies = coinBits(length, () => reduced(f[0], 2n * f[1]), coins);
  return [...bloomBits(own, length, hashes)].reduce((bits, i) => bits ^ (1n << i), lies);
}
const instantaneousBits = (kept, { p, q, length }, coins) => coinBits(length, (i) => ((kept >> i) & 1n ? q : p), coins);

/** An output of the window law: those from `start` on, `width` of them, are e^epsilon times as likely as others. */
function inWindow(start, steps, width, epsilon, coins) {
  if (logistic(epsilon, reduced(steps, width), coins)) return start + coins.below(width);
  const drawn = coins.below(steps);
  return drawn + (drawn >= start ? width : 0n);
}

/** One of the two neighbours of a part of the range on a lattice, by lot. */
function placed(part, steps, coins) {
  const at = nearestWhole(part * Number(steps) * Number(FINE));
  return at / FINE + (coins.flip(at % FINE, FINE) ? 1n : 0n);
}

/** The nearest whole number, the even one of two. */
function nearestWhole(x) {
  const [near, rest] = [x - (x % 1), x % 1];
  const odd = near % 2 !== 0;
  return BigInt(near) + (rest > 0.5 || (rest === 0.5 && odd) ? 1n : rest < -0.5 || (rest === -0.5 && odd) ? -1n : 0n);
}

/** A fraction as the nearest float. */
function asFloat([numerator, denominator]) {
  if (bitLength(numerator < 0n ? -numerator : numerator) > 53 || bitLength(denominator) > 53) {
    throw new Error("This client reads bounds and steps of at most 53 bits: ask for a round with rounder ones.");
  }
  return Number(numerator) / Number(denominator);
}

const outside = () => new Error("The value lies outside the domain of this round.");

function partOfRange(value, { low, high }) {
  if (typeof value !== "number" || !(value >= asFloat(low) && value <= asFloat(high))) throw outside();
  const width = asFloat(reduced(high[0] * low[1] - low[0] * high[1], low[1] * high[1]));
  const part = (value - asFloat(low)) / width;
  return part < 0 ? 0 : part > 1 ? 1 : part;
}

// How values are read: as a whole number, unless the protocol is listed here.
const VALUES = {
  Duchi: partOfRange, Piecewise: partOfRange, Hybrid: partOfRange, SquareWave: partOfRange,
  SplitQueries(value, { queries }) {
    const bits = Array.isArray(value) && value.every((x) => x === 0 || x === 1);
    if (!bits || BigInt(value.length) !== queries) throw outside();
    return value;
  },
  PlanarLaplace(value, { reach, step }) {
    const most = asFloat(reach);
    const within = (x) => typeof x === "number" && x >= -most && x <= most;
    if (!(Array.isArray(value) && value.length === 2 && value.every(within))) throw outside();
    return value.map((x) => nearestWhole(x / asFloat(step)));
  },
};

function wholeValue(value, { domain }) {
  if (!Number.isInteger(value) || value < 0 || BigInt(value) >= domain) throw outside();
  return BigInt(value);
}

// Each returns the numbers of a report, or one number that holds all bits.
const CLIENTS = {
  GRR(own, { epsilon, domain }, round, coins) {
    return [logistic(epsilon, [domain - 1n, 1n], coins) ? own : otherThan(own, domain, coins)];
  },
  OUE(own, { epsilon, domain }, round, coins) {
    return unary(own, domain, epsilon, () => coins.flip(1n, 2n), coins);
  },
  SUE(own, { epsilon, domain }, round, coins) {
    const half = reduced(epsilon[0], 2n * epsilon[1]);
    return unary(own, domain, half, () => logistic(half, [1n, 1n], coins), coins);
  },
  OLH(own, { epsilon, buckets }, round, coins) {
    const prime = BigInt(round.limits[1]);
    const [a, b] = [coins.below(prime - 1n), coins.below(prime)];
    const bucket = (mod((a + 1n) * own + b, prime) * buckets) / prime;
    return [a, b, logistic(epsilon, [buckets - 1n, 1n], coins) ? bucket : otherThan(bucket, buckets, coins)];
  },
  AffineSubsets(own, { epsilon, size }, round, coins) {
    const prime = BigInt(round.limits[1]);
    const inside = logistic(epsilon, reduced(prime - size, size), coins);
    const image = inside ? coins.below(size) : size + coins.below(prime - size);
    const a = coins.below(prime - 1n);
    return [a, mod(image - (a + 1n) * own, prime)];
  },
  HadamardResponse(own, { epsilon, blocks }, round, coins) {
    const length = BigInt(round.limits[0]) / blocks;
    const [block, column] = [own % blocks, own / blocks + 1n];
    const plus = logistic(epsilon, [2n * blocks - 1n, 1n], coins);
    let row = coins.below(length);
    const half = plus ? 0n : coins.below(2n * blocks - 1n);
    if (half) return [((block + (half + 1n) / 2n) % blocks) * length + row];
    const even = (row & column).toString(2).replaceAll("0", "").length % 2 === 0;
    if (even !== plus) row ^= column & -column;
    return [block * length + row];
  },
  SubsetSelection(own, { epsilon, domain, size }, round, coins) {
    const inside = logistic(epsilon, reduced(domain - size, size), coins);
    const chosen = new Set();
    for (let last = domain - 1n - size + (inside ? 1n : 0n); last < domain - 1n; last++) {
      const drawn = coins.below(last + 1n);
      chosen.add(chosen.has(drawn) ? last : drawn);
    }
    let bits = inside ? 1n << own : 0n;
    for (const v of chosen) bits |= 1n << (v + (v >= own ? 1n : 0n));
    return [bits];
  },
  Rappor(own, parameters, round, coins) {
    return [instantaneousBits(permanentBits(own, parameters, coins), parameters, coins)];
  },
  SplitQueries(answers, { epsilon, queries }, round, coins) {
    const query = coins.below(queries);
    return [query, (answers[Number(query)] === 1) === logistic(epsilon, [1n, 1n], coins) ? 1n : 0n];
  },
  ProjectiveGeometry(own, { epsilon }, round, coins) {
    const [r, cells] = [BigInt(round.derived.prime), BigInt(round.limits[0])];
    const points = (dimensions) => (r ** dimensions - 1n) / (r - 1n);
    let [t, after] = [2n, 0n];
    while (points(t) < cells) t++;
    if (points(t) !== cells) throw new Error("The prime of this round does not fit its limit: write it again.");
    while (own >= points(after + 1n)) after++; // entries after the leading 1
    const digits = (n) => Array.from({ length: Number(t) }, (_, i) => (n / r ** (t - 1n - BigInt(i))) % r);
    const mine = digits(own - points(after) + r ** after);
    const [first, orthogonal] = [Number(t - 1n - after), points(t - 1n)];
    const product = logistic(epsilon, reduced(cells - orthogonal, orthogonal), coins) ? 0n : 1n;
    let drawn;
    do {
      drawn = mine.map((_, i) => (i === first ? 0n : coins.below(r)));
      drawn[first] = mod(product - drawn.reduce((sum, x, i) => sum + x * mine[i], 0n), r);
    } while (drawn.every((x) => !x));
    const leading = drawn.find((x) => x);
    let inverse = 1n;
    while ((inverse * leading) % r !== 1n) inverse++;
    const rest = t - 1n - BigInt(drawn.indexOf(leading));
    return [drawn.reduce((n, x) => n * r + ((x * inverse) % r), 0n) - r ** rest + points(rest)];
  },
  Duchi(part, { epsilon }, round, coins) {
    return [inWindow(placed(part, 1n, coins), 1n, 1n, epsilon, coins)];
  },
  Piecewise(part, { epsilon, steps }, round, coins) {
    return [inWindow(placed(part, steps, coins), steps, BigInt(round.limits[0]) - steps, epsilon, coins)];
  },
  Hybrid(part, { epsilon, steps }, round, coins) {
    const piecewise = coins.flip(...reduced(BigInt(round.derived.lots), 1n << 20n));
    if (!piecewise) return CLIENTS.Duchi(part, { epsilon }, round, coins);
    return [2n + inWindow(placed(part, steps, coins), steps, BigInt(round.limits[0]) - 2n - steps, epsilon, coins)];
  },
  SquareWave(part, { epsilon, buckets }, round, coins) {
    const [at, steps] = [part * Number(buckets), buckets - 1n];
    const start = BigInt(at - (at % 1));
    return [inWindow(start < steps ? start : steps, steps, BigInt(round.limits[0]) - steps, epsilon, coins)];
  },
  PlanarLaplace(start, { epsilon, step }, round, coins) {
    const [rate, edge] = [reduced(epsilon[0] * step[0], epsilon[1] * step[1]), (BigInt(round.limits[0]) - 1n) / 2n];
    const scale = reduced(10n * rate[1], 7n * rate[0]);
    let moved;
    do moved = [laplace(scale, coins), laplace(scale, coins)];
    while ((moved[0] || moved[1]) && !nearby(rate, ...moved, coins));
    return start.map((x, i) => x + moved[i] + edge).map((x) => (x < 0n ? 0n : x > 2n * edge ? 2n * edge : x));
  },
};

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return BigInt(~crc >>> 0);
}

/** The parameters of a round: fractions as [numerator, denominator], whole numbers as BigInt. */
function parametersOf(round) {
  if (round.format !== "noisette local round" || round.version !== 1 || !Object.hasOwn(CLIENTS, round.protocol)) {
    throw new Error("This round is of another version, or of a protocol that this client does not have.");
  }
  const read = (x) => (typeof x === "string" ? fraction(x) : BigInt(x));
  const parameters = Object.fromEntries(Object.entries(round.parameters).map(([name, x]) => [name, read(x)]));
  const { epsilon = [0n, 1n] } = parameters;
  if (round.protocol !== "PlanarLaplace" && epsilon[0] > 12n * epsilon[1]) {
    throw new Error("This client has coins for an epsilon of at most 12: ask for a round with a smaller one.");
  }
  return parameters;
}

/** The record of one value, as bytes. */
export function record(round, value, coins = new Coins()) {
  const parameters = parametersOf(round);
  const own = (VALUES[round.protocol] ?? wholeValue)(value, parameters);
  return sealed(round, CLIENTS[round.protocol](own, parameters, round, coins), coins);
}

/** What a phone keeps of a value for a round of Rappor, as a text: draw it once for each value. */
export function permanent(round, value, coins = new Coins()) {
  const parameters = parametersOf(round);
  return permanentBits(wholeValue(value, parameters), parameters, coins).toString(16);
}

/** The record of what `permanent` returned: new for each report. */
export function instantaneous(round, kept, coins = new Coins()) {
  const parameters = parametersOf(round);
  return sealed(round, [instantaneousBits(BigInt(`0x${kept}`), parameters, coins)], coins);
}

function sealed(round, numbers, coins) {
  const widths = round.limits ? round.limits.map((limit) => bitLength(BigInt(limit) - 1n)) : [round.bits];
  let [report, at] = [0n, 0];
  numbers.forEach((number, i) => { report |= number << BigInt(at); at += widths[i]; });
  const size = (at + 7) >> 3;
  const id = coins.draw(16);
  const bytes = [0xd1, ...little(BigInt(size), 2), ...round.fingerprint.match(/../g).map((hex) => parseInt(hex, 16)),
    ...little(BigInt(round.round), 4), ...id, ...little(report, size)];
  return Uint8Array.from([...bytes, ...little(crc32(bytes), 4)]);
}

function little(number, size) {
  return Array.from({ length: size }, (_, i) => Number((number >> BigInt(8 * i)) & 255n));
}

/** A record as base64, for a line of a text file. */
export function asLine(bytes) {
  return btoa(String.fromCharCode(...bytes));
}
