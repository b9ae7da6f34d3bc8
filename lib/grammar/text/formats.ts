import type { Format } from '../schema/keywords.ts';

const month = String.raw`(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])`;
// Leap years of the Gregorian calendar: every fourth year, except the centuries that 400 does not divide.
const leapYear = String.raw`(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)`;
const date = String.raw`(?:\d{4}-(?:${month})|${leapYear}-02-29)`;
const clock = String.raw`(?:[01]\d|2[0-3]):[0-5]\d`;
const time = String.raw`${clock}:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]${clock})`;
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?';
const byte = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
const ipv4 = String.raw`${byte}(?:\.${byte}){3}`;
const atom = "[A-Za-z0-9!#$%&'*+/=?^_{|}~-]{1,20}";
const unreserved = "[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}";

interface FormatRule {
  /** Pattern of the generated texts: a subset of the format that every validator accepts. */
  generates: string;
  /**
   * Pattern that accepts at least every text of the format. In `oneOf`, two formats count as overlapping if these
   * patterns overlap.
   */
  accepts: string;
}

/**
 * The formats of JSON Schema 2020-12 validation, section 7.3. What `generates` matches:
 *
 * - date, time, date-time: RFC 3339, section 5.6, with days that exist. No leap second, capital `T` and `Z`.
 * - duration: RFC 3339, appendix A, numbers of at most 6 digits.
 * - email: a dot-atom (RFC 5322) of at most three parts at a host name with a dot.
 * - hostname: RFC 1123, at most five labels of 32 characters.
 * - ipv4: RFC 2673, section 3.2. ipv6: RFC 4291, section 2.2, without the mixed form. uuid: RFC 9562.
 * - uri: RFC 3986, with a scheme; an authority without user information or an address in brackets.
 */
export const FORMAT_RULES: { readonly [F in Format]: FormatRule } = {
  date: { generates: `^${date}$`, accepts: `^${date}$` },
  time: { generates: `^${time}$`, accepts: String.raw`^\d\d:` },
  'date-time': { generates: `^${date}T${time}$`, accepts: String.raw`^\d{4}-\d\d-\d\d[Tt\s]\d\d:` },
  duration: {
    generates: duration(),
    accepts: '^P',
  },
  email: { generates: String.raw`^${atom}(?:\.${atom}){0,2}@${label}(?:\.${label}){1,3}$`, accepts: '@' },
  hostname: { generates: String.raw`^${label}(?:\.${label}){0,4}$`, accepts: String.raw`^[^@:/\s]{1,253}$` },
  ipv4: { generates: `^${ipv4}$`, accepts: `^${ipv4}$` },
  ipv6: { generates: ipv6(), accepts: ':.*:' },
  uri: {
    generates: `^[A-Za-z][A-Za-z0-9+.-]{0,19}:${uriAfterScheme()}$`,
    accepts: '^[A-Za-z][A-Za-z0-9+.-]*:',
  },
  uuid: {
    generates: '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$',
    accepts: '^(?:urn:uuid:)?[0-9A-Fa-f]{8}-',
  },
};

function duration(): string {
  const n = String.raw`\d{1,6}`;
  const clock = `(?:${n}H(?:${n}M(?:${n}S)?)?|${n}M(?:${n}S)?|${n}S)`;
  const days = `(?:${n}Y(?:${n}M(?:${n}D)?)?|${n}M(?:${n}D)?|${n}D)`;
  return `^P(?:${days}(?:T${clock})?|T${clock}|${n}W)$`;
}

/** Returns the pattern of an IPv6 address: eight groups, or fewer with one `::` that stands for at least two. */
function ipv6(): string {
  const group = '[0-9A-Fa-f]{1,4}';
  const forms = [`(?:${group}:){7}${group}`, '::', `::${group}(?::${group}){0,5}`];
  for (let before = 1; before <= 6; before++) {
    const after = 6 - before;
    const left = `${group}(?::${group}){${before - 1}}`;
    forms.push(after === 0 ? `${left}::` : `${left}::(?:${group}(?::${group}){0,${after - 1}})?`);
  }
  return `^(?:${forms.join('|')})$`;
}

function uriAfterScheme(): string {
  const path = `(?:${unreserved}|[:@/])`;
  const rest = String.raw`(?:\?(?:${unreserved}|[:@/?])*)?(?:#(?:${unreserved}|[:@/?])*)?`;
  const authority = String.raw`//${label}(?:\.${label}){0,4}(?::\d{1,5})?`;
  return `(?:${authority}(?:/${path}*)?|(?:${unreserved}|[:@])${path}*)${rest}`;
}
