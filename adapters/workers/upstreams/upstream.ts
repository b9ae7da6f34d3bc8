import * as v from 'valibot';
import { modelId } from '../../../lib/schema/values.ts';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

const UpstreamUrl = v.pipe(
  v.string(),
  v.check(
    (text) => isUpstreamUrl(text),
    'A box needs an https:// address (http:// only for loopback), without ? and #.',
  ),
  v.transform((text) => text.replace(/\/+$/, '')),
);

/** Describes an upstream, a machine that runs `assay serve`, in the configuration. */
const Upstream = v.strictObject({
  /**
   * Name of the upstream in logs and in `/boxes/<name>`. Rendezvous hashing depends on it, so renaming an upstream
   * moves its contexts to other upstreams.
   */
  name: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'A box name is 1 to 63 of a-z 0-9 -.')),
  url: UpstreamUrl,
  /** Name of the secret that contains the upstream's API key, such as BOX_KEY_1. It is never the key itself. */
  key_secret: v.pipe(v.string(), v.regex(/^[A-Z][A-Z0-9_]{0,63}$/, 'key_secret is the name of a secret: A-Z 0-9 _.')),
  /** Models that may be requested from this upstream. */
  models: v.pipe(
    v.array(modelId('A model is <namespace>/<name>.')),
    v.minLength(1, 'A box needs at least one model.'),
    v.maxLength(64),
  ),
  /** Share of the contexts that the upstream gets, relative to the other upstreams' weights. */
  weight: v.optional(v.pipe(v.number(), v.finite(), v.minValue(0.01), v.maxValue(100)), 1),
});
export type Upstream = v.InferOutput<typeof Upstream>;

const Upstreams = v.pipe(v.array(Upstream), v.minLength(1, 'The list of boxes is empty.'));

const MOST_UPSTREAMS = 1_000;
const VARIABLE = /^BOXES(_\d{1,3})?$/;

/**
 * Parses the upstreams in the variables BOXES, BOXES_2, BOXES_3, … A variable can hold 5 KB, about 35 upstreams; a
 * larger fleet needs several. Each is a list or its JSON text, which wrangler's `--var` and Cloudflare's dashboard
 * produce. Throws an `Error` that says what to fix.
 */
export function parseUpstreams(variables: Readonly<Record<string, unknown>>): readonly Upstream[] {
  const names = Object.keys(variables).filter((name) => VARIABLE.test(name));
  if (names.length === 0) throw new Error('BOXES: There is no list of boxes. Put one into [vars] in wrangler.toml.');
  const upstreams = names.flatMap((name) => parseList(name, variables[name]));
  const twice = upstreams.find(({ name }, i) => upstreams.findIndex((upstream) => upstream.name === name) !== i);
  if (twice) throw new Error(`BOXES: Two boxes have the name ${twice.name}. Give each its own name.`);
  if (upstreams.length > MOST_UPSTREAMS)
    throw new Error(
      `BOXES: ${upstreams.length} boxes are more than an edge can have (${MOST_UPSTREAMS}). Remove some.`,
    );
  return upstreams;
}

function parseList(name: string, value: unknown): readonly Upstream[] {
  const result = v.safeParse(Upstreams, fromJsonText(name, value), { abortPipeEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw new Error(`${name}${v.getDotPath(issue) ? ` at ${v.getDotPath(issue)}` : ''}: ${wording(issue)}`);
}

function wording({ type, expected, message }: v.BaseIssue<unknown>): string {
  if (type !== 'strict_object') return message;
  return expected === 'never'
    ? `A box has these fields: ${Object.keys(Upstream.entries).join(', ')}.`
    : 'This field is missing.';
}

function fromJsonText(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch (cause) {
    throw new Error(`${name} is not valid JSON. Give a list of boxes, as docs/deploy-to-workers.md shows.`, { cause });
  }
}

/**
 * Tells whether a text is an allowed URL of an upstream: without query, fragment and credentials. Plain http is allowed
 * only for the same machine, because requests carry the key in the Authorization header.
 */
function isUpstreamUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.search || url.hash || url.username || url.password) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname));
}
