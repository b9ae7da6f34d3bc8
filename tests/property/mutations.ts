import fc from 'fast-check';

/** Generates JSON text with something wrong in it, from a valid value. */

const NAMES = [
  'id',
  'context',
  'messages',
  'options',
  'choices',
  '__proto__',
  'constructor',
  'toString',
  'stream',
  '10',
  '',
  'name',
  'type',
  '$ref',
  'properties',
  'a b',
  '\u2028',
];

/** Values that belong nowhere, as JSON text, so that `1e999`, repeated keys and deep nests are among them. */
const ODD = [
  'null',
  'true',
  '-0',
  '0',
  '1',
  '-1',
  '1.5',
  '1e999',
  '-1e999',
  '1e-999',
  '9007199254740993',
  '""',
  '" "',
  '"\\u0000"',
  '"\\ud83d\\ude00"',
  '[]',
  '{}',
  '[null]',
  '[[]]',
  '{"":""}',
  '{"__proto__":{"x":1}}',
  '{"a":1,"a":2}',
  '{"$ref":"#"}',
  '{"type":"object"}',
  '{"$ref":"#/properties/a"}',
  '{"allOf":[{"$ref":"#"}]}',
  '{"pattern":"(a+)+$"}',
  '{"enum":[]}',
  '{"const":1e999}',
  `"${'x'.repeat(3000)}"`,
  `[${'1,'.repeat(500)}1]`,
  `${'[{"a":'.repeat(20)}1${'}]'.repeat(20)}`,
];

const oddJson = fc.oneof(fc.constantFrom(...ODD), fc.json({ maxDepth: 4 }));

type Edit = { at: number; how: 'replace' | 'remove' | 'insert' | 'repeat'; name: string; json: string };
const edit: fc.Arbitrary<Edit> = fc.record({
  at: fc.nat(10_000),
  how: fc.constantFrom('replace', 'replace', 'remove', 'insert', 'repeat'),
  name: fc.oneof(fc.constantFrom(...NAMES), fc.string()),
  json: oddJson,
});

/** Returns the value with some edits, as JSON text. */
export function edited(value: unknown): fc.Arbitrary<string> {
  return fc
    .array(edit, { minLength: 1, maxLength: 3 })
    .map((edits) => edits.reduce((tree, one) => applyEdit(tree, one), treeOf(value)))
    .map(textOf);
}

/** Returns the text with some bytes changed, inserted or removed, or cut. */
export function scrambled(text: string): fc.Arbitrary<Uint8Array<ArrayBuffer>> {
  const byte = fc.oneof(fc.constantFrom(...'{}[]",:\\-0e'.split('').map((char) => char.charCodeAt(0))), fc.nat(255));
  const change = fc.record({ at: fc.nat(100_000), byte, how: fc.constantFrom('set', 'put', 'take', 'cut') });
  return fc.array(change, { minLength: 1, maxLength: 4 }).map((changes) => {
    const bytes = [...new TextEncoder().encode(text)];
    for (const { at, byte, how } of changes) {
      const place = at % (bytes.length + 1);
      if (how === 'cut') bytes.length = place;
      else bytes.splice(place, how === 'put' ? 0 : 1, ...(how === 'take' ? [] : [byte]));
    }
    return new Uint8Array(bytes);
  });
}

/** JSON that keeps the order of its members and may repeat them. */
type Tree = { json: string } | { items: Tree[] } | { members: [string, Tree][] };

function treeOf(value: unknown): Tree {
  if (Array.isArray(value)) return { items: value.map(treeOf) };
  if (typeof value !== 'object' || value === null) return { json: JSON.stringify(value) };
  return { members: Object.entries(value).map(([name, inner]) => [name, treeOf(inner)]) };
}

function textOf(tree: Tree): string {
  if ('json' in tree) return tree.json;
  if ('items' in tree) return `[${tree.items.map(textOf).join(',')}]`;
  return `{${tree.members.map(([name, inner]) => `${JSON.stringify(name)}:${textOf(inner)}`).join(',')}}`;
}

/** Returns every value in a tree, with its parent. */
function places(tree: Tree): { list: unknown[]; index: number }[] {
  if ('json' in tree) return [];
  const list: unknown[] = 'items' in tree ? tree.items : tree.members;
  return list.flatMap((_, index) => {
    const inner = 'items' in tree ? tree.items[index]! : tree.members[index]![1];
    return [{ list, index }, ...places(inner)];
  });
}

function applyEdit(root: Tree, { at, how, name, json }: Edit): Tree {
  const all = places(root);
  if (all.length === 0) return { json };
  const { list, index } = all[at % all.length]!;
  const old = list[index];
  const make = (named: string) => (Array.isArray(old) ? [named, { json }] : { json });
  switch (how) {
    case 'replace':
      list[index] = make(Array.isArray(old) ? (old[0] as string) : '');
      break;
    case 'remove':
      list.splice(index, 1);
      break;
    case 'insert':
      list.splice(index, 0, make(name));
      break;
    case 'repeat':
      list.splice(index, 0, structuredClone(old));
  }
  return root;
}
