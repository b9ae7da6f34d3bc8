import type { Vocabulary } from '../../lib/grammar/constraint.ts';

/** Creates a vocabulary of given tokens, the last one being the end. `encode` takes the longest token each time. */
export function vocabularyOf(tokens: readonly Uint8Array[]): Vocabulary {
  const end = tokens.length;
  const byText = new Map(tokens.map((bytes, id) => [latin1(bytes), id]));
  const longest = tokens.reduce((most, { length }) => Math.max(most, length), 1);
  return {
    size: tokens.length + 1,
    bytes: (token) => tokens[token] ?? null,
    end: new Set([end]),
    encode(text) {
      const bytes = latin1(new TextEncoder().encode(text));
      const ids: number[] = [];
      for (let at = 0; at < bytes.length; ) {
        let length = Math.min(longest, bytes.length - at);
        while (length > 1 && !byText.has(bytes.slice(at, at + length))) length--;
        ids.push(byText.get(bytes.slice(at, at + length))!);
        at += length;
      }
      return ids;
    },
  };
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

const everyByte = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));

/** The 256 bytes and some tokens that cross JSON's boundaries. */
export function smallVocabulary(): Vocabulary {
  const texts = [
    '{"',
    '":',
    '":"',
    '","',
    '"}',
    '"},{"',
    '":null',
    'null',
    'true',
    'false',
    ',"',
    '}}',
    ']}',
    '[]',
    '["',
    '"]',
    '{}',
    'a":',
    '\\"',
    '\\n',
    '\\u00',
    'ab',
    'abc',
    'a"',
    'b",',
    'é',
    'éé',
    '中',
    '😀',
    ' a',
    '  ',
    '1',
    '12',
    '123',
    '-1',
    '0.',
    '.5',
    '00',
    '1,',
    '1}',
    ',2',
    'a',
    '"a',
    '"a":',
    'value',
    'reason',
    '"a":1,"b',
    'a":1,"a":',
    'a":1,"a"',
    'name',
    '"name":"',
    '2024-',
    '-0',
    '@',
    '.com',
    '//',
    ':',
    'x'.repeat(20),
  ];
  const unique = new Set([...texts, '\xe4']);
  return vocabularyOf([
    ...everyByte,
    ...[...unique].map((text) => new TextEncoder().encode(text)),
    Uint8Array.of(0xe4, 0xb8),
    Uint8Array.of(0xb8, 0xad, 0x22),
  ]);
}

/**
 * Creates 150,000 tokens shaped like those of a byte-level BPE: words with and without a space before them, punctuation
 * that crosses JSON's boundaries, numbers, other scripts, and parts of UTF-8. Seeded, so it is the same everywhere.
 */
export function largeVocabulary(size = 150_000): Vocabulary {
  let seed = 42;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const pick = <T>(list: readonly T[]): T => list[random(list.length)]!;
  const onsets = [
    '',
    'b',
    'c',
    'd',
    'f',
    'g',
    'h',
    'l',
    'm',
    'n',
    'p',
    'r',
    's',
    't',
    'v',
    'w',
    'st',
    'tr',
    'ch',
    'pr',
    'qu',
    'sh',
  ];
  const vowels = ['a', 'e', 'i', 'o', 'u', 'ea', 'ou', 'io'];
  const codas = ['', '', 'n', 'r', 's', 't', 'l', 'nd', 'ing', 'ed', 'er', 'ly'];
  const word = () => Array.from({ length: 1 + random(4) }, () => pick(onsets) + pick(vowels) + pick(codas)).join('');
  const marks = [
    '"',
    ',',
    ':',
    '}',
    '{',
    '[',
    ']',
    '.',
    '!',
    '?',
    "'",
    '(',
    ')',
    '-',
    '/',
    '\\',
    ';',
    '=',
    '\n',
    ' ',
    '_',
    '*',
    '#',
    '@',
  ];
  const punctuation = () => Array.from({ length: 1 + random(4) }, () => pick(marks)).join('');
  const ranges = [
    [0x4e00, 0x9fa5],
    [0x400, 0x45f],
    [0xac00, 0xd7a3],
    [0x3041, 0x30ff],
    [0xe0, 0xff],
    [0x1f600, 0x1f64f],
    [0x621, 0x64a],
  ] as const;
  const foreign = () => {
    const [from, to] = pick(ranges);
    return Array.from({ length: 1 + random(3) }, () => String.fromCodePoint(from + random(to - from))).join('');
  };
  const found = new Map<string, Uint8Array>(everyByte.map((bytes) => [latin1(bytes), bytes]));
  const add = (bytes: Uint8Array) => found.set(latin1(bytes), bytes);
  const encoder = new TextEncoder();
  for (const text of [
    '":"',
    '","',
    '"}',
    '":',
    '{"',
    '":null',
    '"],"',
    '":[',
    '":{',
    '":-',
    '":["',
    '}]',
    '"]}',
    'null',
    'true',
    'false',
  ])
    add(encoder.encode(text));
  for (let n = 0; n < 1000; n++) add(encoder.encode(String(n)));
  for (let n = 1; n <= 80; n++) add(encoder.encode(' '.repeat(n)));
  while (found.size < size - 1) {
    const kind = random(100);
    const base = word();
    if (kind < 40) add(encoder.encode(` ${base}`));
    else if (kind < 65) add(encoder.encode(base));
    else if (kind < 72) add(encoder.encode(base[0]!.toUpperCase() + base.slice(1)));
    else if (kind < 78) add(encoder.encode(punctuation()));
    else if (kind < 80) add(encoder.encode(pick(marks) + base));
    else if (kind < 97) add(encoder.encode(foreign()));
    else add(encoder.encode(foreign()).slice(0, 1 + random(4)));
  }
  return vocabularyOf([...found.values()]);
}
