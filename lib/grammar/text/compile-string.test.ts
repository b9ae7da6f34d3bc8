import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Fuel, TooLarge } from '../fuel.ts';
import { patternDfa, stringLanguage } from './compile-string.ts';
import { UnsupportedPattern } from './pattern.ts';
import { StringLanguage } from './string-language.ts';

const any = { min: 0, max: Number.POSITIVE_INFINITY, patterns: [], formats: [] };
const ofPattern = (pattern: string) => stringLanguage({ ...any, patterns: [pattern] }, 'generates', new Fuel());

describe('patterns accept the texts that RegExp matches', () => {
  const patterns = [
    '',
    '^$',
    'a',
    '^a',
    'a$',
    '^a$',
    '^(a|b)*$',
    '^a|b$',
    '(^a|b$)',
    'a{2}',
    '^a{2,3}$',
    '^(ab){2,}$',
    '^a?b+c*?$',
    '^[a-c]+$',
    '^[^a-c]+$',
    '^\\d+$',
    '^\\w\\W\\s\\S$',
    '^.$',
    '^\\.$',
    '^[\\]\\-a]+$',
    '^\\u0061\\x62$',
    '^\\u{1F600}$',
    '^\\uD83D\\uDE00$',
    '^[😀-😂]$',
    '^\\p{L}+$',
    '^\\P{L}+$',
    '^[\\p{Lu}\\d]{2}$',
    '^(?:a|)b$',
    '^(?<n>a)(b(c|d))*$',
    'a^',
    '$a',
    '^^a$$',
    '(a$|b)c?',
    '^(a*)*$',
    '^(|a){3}$',
    '^[^]$',
    '^a{0}b$',
    '(?:^|b)a(?:$|c)',
    'ab|ba',
    '^(a{1,2}){2,3}$',
    '(^)*a($)*',
    '^é+$',
    '^/\\/$',
  ];
  const letters = fc.constantFrom(...'aaabbbcccdAZ09_- .]/\n\té😀😁ßЖ中', '\u2028');
  test.each(patterns)('%s', (pattern) => {
    const language = ofPattern(pattern);
    const oracle = new RegExp(pattern, 'u');
    fc.assert(
      fc.property(fc.array(letters, { maxLength: 7 }), (chars) => {
        expect(language.has(chars.join(''))).toBe(oracle.test(chars.join('')));
      }),
      { numRuns: 300 },
    );
  });
});

test.each<[pattern: string, matching: string[], other: string[]]>([
  ['^\\d{3}\\-\\d{2}$', ['123-45'], ['123\\-45']],
  ['^\\@\\_\\#\\ \\"$', ['@_# "'], ['']],
  ['^[\\@\\-z]$', ['@', '-', 'z'], ['a', '\\']],
  ['^{a}]$', ['{a}]'], ['a']],
  ['^a{1,2}{$', ['a{', 'aa{'], ['a']],
  ['\\A(?P<year>\\d{4})\\Z', ['2026'], ['x2026']],
  // The e-mail addresses of zod 4.3 and the decimals of Pydantic 2.13.
  [
    "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
    ['a.b@c.de'],
    ['.a@c.de', 'a..b@c.de', 'a@c..de'],
  ],
  [
    '^(?!^[-+.]*$)[+-]?0*(?:\\d{0,8}|(?=[\\d.]{1,11}0*$)\\d{0,8}\\.\\d{0,2}0*$)',
    ['-0012.50', '0', '12345678.9'],
    ['+', ''],
  ],
  ['(?=.*\\d)(?=.*[a-z])^.{3,5}$', ['a1-', '--b2'], ['abc', '123', 'a1']],
])('%s is read as other languages mean it', (pattern, matching, other) => {
  const language = new StringLanguage(patternDfa(pattern, new Fuel()), 0, Infinity, new Fuel());
  expect([...matching, ...other].filter((text) => language.has(text))).toEqual(matching);
});

test.each<[string, new (...args: never[]) => Error]>([
  ['(?<!a)b', UnsupportedPattern],
  ['^\\bword\\b$', UnsupportedPattern],
  ['^(a)\\1$', UnsupportedPattern],
  ['a{100000}', TooLarge],
  ['((a{99}){99}){99}', TooLarge],
  ['(a|b)*a(a|b){20}', TooLarge],
  ['a'.repeat(1001), TooLarge],
  ['(', SyntaxError],
  ['a**', SyntaxError],
])('%s is refused', (pattern, error) => {
  expect(() => patternDfa(pattern, new Fuel())).toThrow(error);
});

test('a pattern that makes backtracking explode is read like any other', () => {
  const language = ofPattern(`^${'(a?)'.repeat(100)}${'a'.repeat(100)}$`);
  expect(language.has('a'.repeat(150))).toBe(true);
  expect(language.has('a'.repeat(201))).toBe(false);
});

describe('formats', () => {
  test.each([
    [
      'date',
      ['2024-02-29', '2000-02-29', '2023-12-31'],
      ['2023-02-29', '1900-02-29', '2023-04-31', '2023-13-01', '23-01-01', '0000-01-01', '0000-02-29'],
    ],
    ['time', ['23:59:59Z', '00:00:00.123+02:00'], ['24:00:00Z', '12:60:00Z', '12:00:00', '12:00:61Z']],
    ['date-time', ['2024-02-29T10:00:00Z'], ['2023-02-29T10:00:00Z', '2024-02-29 10:00:00Z', '2024-02-29T10:00:00']],
    ['duration', ['P1Y2M3DT4H5M6S', 'PT5M', 'P3W', 'P1M'], ['P', 'PT', 'P1', '1Y', 'P1W2D', 'P1S']],
    [
      'email',
      [
        'a.b+c@example.com',
        'customer.support.department.of.the@mail.eu.example.co.uk',
        `${'a.b'.repeat(21)}c@example.com`,
        `a@${'b'.repeat(63)}.de`,
      ],
      [
        'a@',
        '@example.com',
        'a..b@example.com',
        'a b@example.com',
        'a@b@c.de',
        `${'a.b'.repeat(21)}cd@example.com`,
        `a@${'b'.repeat(64)}.de`,
        `a@${'bc.'.repeat(84)}de`,
      ],
    ],
    [
      'hostname',
      [
        'example.com',
        'localhost',
        'a-b.c',
        'internal-my-load-balancer-1234567890.us-east-1.elb.amazonaws.com',
        'db.cluster-abcdefghijkl.eu-central-1.rds.amazonaws.com.cn',
        `${'a.'.repeat(126)}b`,
        `${'a'.repeat(63)}.b`,
      ],
      ['-a.com', 'a-.com', 'a..b', 'a_b', '', `${'a'.repeat(64)}.b`, `${'a.'.repeat(126)}bc`, 'ab--c.de'],
    ],
    ['ipv4', ['0.0.0.0', '255.255.255.255'], ['256.0.0.1', '1.2.3', '01.2.3.4', '1.2.3.4.5']],
    [
      'ipv6',
      [
        '::',
        '::1',
        '1::',
        '2001:db8::ff00:42:8329',
        '1:2:3:4:5:6:7:8',
        '1:2:3:4:5:6::',
        '::ffff:10.0.0.1',
        '64:ff9b::192.0.2.33',
        '1:2:3:4:5:6:7.8.9.10',
      ],
      [':::', '1:2:3', '1::2::3', '12345::', '1:2:3:4:5:6:7:8:9', '::ffff:256.0.0.1', '1:2:3:4:5:6:7:8.9.10.11'],
    ],
    [
      'uri',
      [
        'https://example.com/a?b=c#d',
        'mailto:a@b.c',
        'urn:isbn:123',
        'https://my-app-git-feature-branch-my-team-name.vercel.app',
        'postgres://app:s%40cret@db.eu.internal.example.com:5432/orders',
        'http://[2001:db8::7]:8080/',
        'http://my_service:8080/health',
        'file:///etc/hosts',
        'file:/etc/hosts',
      ],
      ['example.com', '/a', 'http://a b', ':a', 'a:%zz', 'http://', 'http://:80', 'http://[1]/', 'http://a@b@c/'],
    ],
    [
      'uuid',
      ['123e4567-e89b-12d3-a456-426614174000'],
      ['123e4567e89b12d3a456426614174000', '123e4567-e89b-12d3-a456-42661417400g'],
    ],
  ] as const)('%s', (format, good, bad) => {
    const language = stringLanguage({ ...any, formats: [format] }, 'generates', new Fuel());
    const covers = stringLanguage({ ...any, formats: [format] }, 'accepts', new Fuel());
    for (const text of good) expect([text, language.has(text), covers.has(text)]).toEqual([text, true, true]);
    for (const text of bad) expect([text, language.has(text)]).toEqual([text, false]);
  });
});
