import { describe, expect, it } from 'vitest';
import type { JsonSchema } from '../../../lib/contract/answer-shape.ts';
import { shapeConstraint } from '../../../lib/tasks/task-grammar.ts';
import { fixture } from '../../../tests/fixture.ts';
import { loadTextModel } from '../text-model.ts';
import { JsonOutput } from './json-output.ts';

const { vocabulary } = await loadTextModel(fixture('text/qwen'));

/**
 * Returns a constraint whose text is the next of `texts` after each call of `grow`. It is settled as far as it agrees
 * with `closed`.
 */
function growing(texts: readonly string[], closed: string) {
  const left = [...texts];
  let now = left.shift()!;
  const settled = () => {
    const differs = [...now].findIndex((character, i) => character !== closed[i]);
    return differs < 0 ? now : now.slice(0, differs);
  };
  return {
    constraint: { text: () => now, settled, closed: () => closed },
    grow() {
      now = left.shift() ?? now;
    },
  };
}

function read(texts: readonly string[], closed: string, { cut = false, stops = [] as string[] } = {}) {
  const { constraint, grow } = growing(texts, closed);
  const output = new JsonOutput(vocabulary, constraint, stops);
  const deltas = texts.slice(1).map(() => {
    const delta = output.push({ token: 65, logprob: -1, top: [] });
    grow();
    return delta;
  });
  deltas.push(output.end(cut));
  return { content: deltas.map((delta) => delta.content), logprobs: deltas.flatMap((delta) => delta.logprobs), output };
}

describe('JsonOutput', () => {
  it.each([
    // Forced text is returned with the token after it, and the rest at the end.
    [['{"a":', '{"a":"x', '{"a":"xy"}'], '{"a":"xy"}', false, '{"a":"xy"}'],
    // An incomplete character is withheld.
    [['{"a":"', '{"a":"\uFFFD', '{"a":"é"}'], '{"a":"é"}', false, '{"a":"é"}'],
    // A cut answer is closed if the closed text continues what was returned.
    [['{"a":', '{"a":"x'], '{"a":"x"}', true, '{"a":"x"}'],
    // Unsettled text is withheld: it may still be replaced by null.
    [['{"a":', '{"a":tr', '{"a":tru'], '{"a":null}', true, '{"a":null}'],
    [['{"a":', '{"a":4', '{"a":42'], '{"a":null,"b":null}', true, '{"a":null,"b":null}'],
  ])('%j', (texts, closed, cut, whole) => {
    expect(read(texts, closed, { cut }).content.join('')).toBe(whole);
  });

  const text = { type: 'string' };
  const short = { type: 'string', maxLength: 3 };
  const members = (names: string, required: string[]) => ({
    type: 'object',
    properties: Object.fromEntries([...names].map((name) => [name, text])),
    required,
  });
  it.each<[string, JsonSchema, string, string]>([
    [
      'a member that only one alternative requires',
      { anyOf: [members('ab', ['a', 'b']), members('acd', ['a'])] },
      '{"a":"x","c',
      '{"a":"x"}',
    ],
    [
      'a text that is too long for one alternative',
      { type: 'object', properties: { v: { anyOf: [short, { enum: ['abcdef', 'abcdeg'] }] } }, required: ['v'] },
      '{"v":"abcd',
      '{"v":null}',
    ],
  ])('returns nothing that a cut takes back: %s', (_, schema, start, whole) => {
    const constraint = shapeConstraint({ kind: 'schema', schema }, vocabulary);
    const output = new JsonOutput(vocabulary, constraint, []);
    let content = '';
    for (const character of start) {
      content += output.push({ token: 65 }).content;
      constraint.skip(character);
    }
    expect(content + output.end(true).content).toBe(whole);
  });

  it('stops before a stop string', () => {
    const { content, output } = read(['{"a":"', '{"a":"one', '{"a":"one two'], '', { stops: ['e t'] });
    expect(content.join('')).toBe('{"a":"on');
    expect(output.stopped).toBe(true);
  });

  it('looks for stop strings in what the model said, not in what closes a cut answer', () => {
    const { content, output } = read(['{"a":"', '{"a":"one'], '{"a":"one"}', { stops: ['}'], cut: true });
    expect(content.join('')).toBe('{"a":"one"}');
    expect(output.stopped).toBe(false);
  });

  it('reports every chosen token once', () => {
    const { logprobs } = read(['{"a":', '{"a":', '{"a":1', '{"a":1}'], '{"a":1}');
    expect(logprobs).toHaveLength(3);
    expect(logprobs[0]).toMatchObject({ logprob: -1, bytes: [...vocabulary.spelling(65)] });
  });
});
