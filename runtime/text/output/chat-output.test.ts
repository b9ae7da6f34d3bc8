import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fixture } from '../../../tests/fixture.ts';
import { loadTextModel } from '../text-model.ts';
import type { Said } from './answer-splitter.ts';
import { answerSplitter } from './answer-splitter.ts';
import { ChatOutput } from './chat-output.ts';
import { reasoningFormat } from './reasoning-format.ts';
import { StopScanner } from './stop-scanner.ts';

const runs = Number(process.env.ASSAY_PROPERTY_RUNS ?? 200);
const model = await loadTextModel(fixture('text/qwen'));
const llama = await loadTextModel(fixture('text/llama2'));

/** Splits `text` into pieces, before each character for which `cuts` is true. */
const pieces = (text: string, cuts: readonly boolean[]) => {
  const out = [''];
  [...text].forEach((character, i) => {
    if (cuts[i % Math.max(1, cuts.length)]) out.push('');
    out[out.length - 1] += character;
  });
  return out;
};
const cuts = fc.array(fc.boolean(), { minLength: 1, maxLength: 24 });

const THINK = reasoningFormat('</think>').format;
const BRACKETS = reasoningFormat('[/THINK]').format;
const HARMONY = reasoningFormat('<|channel|>').format;

function split(parts: readonly string[], inside = false, format = THINK): Said {
  const splitter = answerSplitter(inside, format);
  const said = [...parts.map((part) => splitter.push(part)), splitter.end()];
  return { reasoning: said.map((s) => s.reasoning).join(''), content: said.map((s) => s.content).join('') };
}

describe('answerSplitter', () => {
  const TABLE: [string, boolean, string, string][] = [
    ['plain', false, '', 'plain'],
    [' \n plain ', false, '', ' \n plain '],
    ['<think>a b</think>c', false, 'a b', 'c'],
    ['\n<think>\na b\n</think>\n\nc\n', false, 'a b', 'c\n'],
    ['a b\n</think>\n\nc', true, 'a b', 'c'],
    ['<think>never closed </thin', false, 'never closed </thin', ''],
    ['<think></think>\n\n', false, '', ''],
    ['<thinking> is text', false, '', '<thinking> is text'],
    ['say <think>x</think>', false, '', 'say <think>x</think>'],
    ['<think>a</think>b</think>c<think>d', false, 'a', 'b</think>c<think>d'],
    ['<think>1 < 2 </ x</think>y', false, '1 < 2 </ x', 'y'],
    ['<thi', false, '', '<thi'],
    ['', false, '', ''],
  ];
  it.each(TABLE)(
    '%j (inside: %s) has the reasoning %j and the answer %j, however it is cut',
    (text, inside, reasoning, content) => {
      fc.assert(
        fc.property(cuts, (at) => {
          expect(split(pieces(text, at), inside)).toEqual({ reasoning, content });
        }),
        { numRuns: Math.min(runs, 100) },
      );
    },
  );

  const NEXT = '<|end|><|start|>assistant<|channel|>';
  const TO_ANSWER = `${NEXT}final<|message|>`;
  it.each([
    ['[THINK]hm[/THINK]Yes.', BRACKETS, 'hm', 'Yes.'],
    ['<think>is text here</think>', BRACKETS, '', '<think>is text here</think>'],
    [`<|channel|>analysis<|message|>The user asks.${TO_ANSWER}Yes.`, HARMONY, 'The user asks.', 'Yes.'],
    ['<|channel|>final<|message|>Yes.', HARMONY, '', 'Yes.'],
    ['<|channel|>analysis<|message|>a <|end|> in it<|end|><|start|>x', HARMONY, 'a <|end|> in it', ''],
    [`<|channel|>analysis<|message|>a ${NEXT}analysis<|message|>b${NEXT}final<|message|> c `, HARMONY, 'a\n\nb', 'c '],
    [`<|channel|>commentary<|message|>I look.${NEXT}final<|message|>Yes.`, HARMONY, '', 'I look.\n\nYes.'],
    [' to=functions.f<|channel|>commentary json', HARMONY, '', ''],
    ['to be', HARMONY, '', 'to be'],
    ['Yes.', HARMONY, '', 'Yes.'],
  ])('%j is split as its format says, however it is cut', (text, format, reasoning, content) => {
    fc.assert(
      fc.property(cuts, (at) => {
        expect(split(pieces(text, at), false, format)).toEqual({ reasoning, content });
      }),
      { numRuns: Math.min(runs, 100) },
    );
  });
});

describe('StopScanner', () => {
  it('returns the text before the first stop string, however the text is cut', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 30 });
    const stops = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n'), minLength: 1, maxLength: 4 }), {
      maxLength: 4,
    });
    fc.assert(
      fc.property(letters, stops, cuts, (text, stop, at) => {
        const scanner = new StopScanner(stop);
        let given = '';
        for (const piece of pieces(text, at)) {
          given += scanner.push(piece);
          if (scanner.stopped) break;
        }
        given += scanner.end();
        // The stop string that is complete first ends the text. If several are, the one that begins first does.
        const ends = stop.map((s) => text.indexOf(s)).filter((i) => i >= 0);
        if (ends.length === 0) expect(given).toBe(text);
        else {
          expect(text.startsWith(given)).toBe(true);
          expect(stop.some((s) => text.startsWith(s, given.length))).toBe(true);
          expect(stop.every((s) => !given.includes(s))).toBe(true);
        }
      }),
      { numRuns: runs },
    );
  });
});

function read(output: ChatOutput, tokens: readonly number[]) {
  const deltas = [
    ...tokens.map((token) => output.push({ token, logprob: -token, top: [{ token, logprob: -token }] })),
    output.end(),
  ];
  return {
    reasoning: deltas.map((d) => d.reasoning).join(''),
    content: deltas.map((d) => d.content).join(''),
    logprobs: deltas.flatMap((d) => d.logprobs),
    deltas,
  };
}
const options = { stops: [] as string[], thinking: false, format: THINK };

describe('ChatOutput', () => {
  it.each(['Señor €5 日本語 👋🏽 ok', 'e\u0301 👩‍👩‍👧', '\uFEFFmark'])('returns %j in whole characters', (text) => {
    const { content, deltas } = read(new ChatOutput(model.vocabulary, options), model.tokenizer.encodeUser(text, true));
    expect(content).toBe(text.normalize('NFC'));
    for (const delta of deltas) expect(delta.content).not.toContain('\uFFFD');
  });

  it('removes the space that the tokenizer adds at the beginning', () => {
    expect(
      read(new ChatOutput(llama.vocabulary, options), llama.tokenizer.encodeUser('Hello world', false)).content,
    ).toBe('Hello world');
  });

  it('splits reasoning and answer where the tags are tokens', () => {
    const ids = model.tokenizer.encodeTemplate('<think>\nhm 👋🏽\n</think>\n\nYes.', true);
    expect(read(new ChatOutput(model.vocabulary, options), ids)).toMatchObject({
      reasoning: 'hm 👋🏽',
      content: 'Yes.',
    });
  });

  it('omits control tokens', () => {
    const ids = model.tokenizer.encodeTemplate('<|im_start|>Yes.<|im_end|>', true);
    expect(read(new ChatOutput(model.vocabulary, options), ids).content).toBe('Yes.');
  });

  it.each(['', '\n\n'])(
    'returns log-probabilities for the tokens of the answer alone, with their bytes: %j',
    (between) => {
      const answer = model.tokenizer.encodeTemplate('Yes 👋🏽', true);
      const ids = [...model.tokenizer.encodeTemplate(`<think>\nhm\n</think>${between}`, true), ...answer];
      const { logprobs } = read(new ChatOutput(model.vocabulary, options), ids);
      expect(logprobs.map(({ logprob }) => -logprob)).toEqual(answer);
      expect(new TextDecoder().decode(Uint8Array.from(logprobs.flatMap(({ bytes }) => bytes)))).toBe('Yes 👋🏽');
    },
  );

  it('finds a stop string that spans tokens, and drops the rest', () => {
    const ids = model.tokenizer.encodeUser('one two three four', true);
    const output = new ChatOutput(model.vocabulary, { ...options, stops: ['o th'] });
    const { content, logprobs } = read(output, ids);
    expect(content).toBe('one tw');
    expect(output.stopped).toBe(true);
    expect(logprobs.length).toBeLessThan(ids.length);
  });
});
