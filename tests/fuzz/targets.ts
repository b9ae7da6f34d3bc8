import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chatEvents } from '../../adapters/workers/forward/chat-events.ts';
import { UpstreamFault } from '../../adapters/workers/forward/upstream-fault.ts';
import { atOnce } from '../../lib/at-once.ts';
import { AssayError } from '../../lib/errors.ts';
import { leavesOf } from '../../lib/json/leaves.ts';
import { parseJson } from '../../lib/json/parse.ts';
import { checkAnswerSchema } from '../../lib/tasks/check-answer-schema.ts';
import { readGguf } from '../../runtime/checkpoint/gguf/read-gguf.ts';
import { ggufTokenizer } from '../../runtime/checkpoint/gguf/tokenizer.ts';
import { readSafetensors } from '../../runtime/checkpoint/safetensors.ts';
import { RefusedContract } from '../../runtime/contracts/published-files.ts';
import { readTorchFile, TorchTensor, type TorchValue } from '../../runtime/contracts/torch-file.ts';
import { readModel } from '../../runtime/onnx/format/read-model.ts';
import { createChatTemplate } from '../../runtime/text/template/chat-template.ts';
import { loadTextModel } from '../../runtime/text/text-model.ts';
import { modelFixture } from '../fixture.ts';
import { checkVerdict } from './json-oracle.ts';

/** A parser of untrusted input. */
export interface FuzzTarget {
  /** Reads one input; throws when the parser breaks a promise. A refusal by a named error is none. */
  run(bytes: Uint8Array): void | Promise<void>;
  /** Words of the format. */
  words: readonly string[];
}

const JSON_WORDS = [
  'null',
  'true',
  '""',
  '"a"',
  '[]',
  '{}',
  '0',
  '-1',
  '1e999',
  '0.5',
  '9007199254740993',
  '\\ud83d',
  '\\u0000',
  ',',
  ':',
];
const SCHEMA_WORDS = [
  ...['type', 'properties', 'required', 'items', 'prefixItems', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', 'not'],
  ...['$ref', '$defs', 'pattern', 'format', 'minLength', 'maxLength', 'minimum', 'maximum', 'multipleOf'],
  ...['minItems', 'maxItems', 'uniqueItems', 'additionalProperties', 'object', 'array', 'string', 'integer', 'number'],
].map((word) => `"${word}"`);
const REFERENCES = ['"#"', '"#/$defs/a"', '"^[a-z]{2,5}$"', '"(a|b)*"', '"date-time"', '"uuid"'];
const TEMPLATE_WORDS = [
  ...['{% for m in messages %}', '{% endfor %}', '{% if add_generation_prompt %}', '{% endif %}', '{% else %}'],
  ...['{{ m.content }}', "{{ m['role'] }}", '{% set a = 1 %}', 'namespace(a=1)', 'loop.index0', 'range(9)', ' | trim'],
  ...[
    " + 'x'",
    'messages[0]',
    '[1:]',
    'is defined',
    'raise_exception("x")',
    '__proto__',
    'constructor',
    '{#',
    '#}',
    '{%-',
    '-%}',
  ],
];
const EVENT_WORDS = [
  'data: ',
  'data:',
  '\n\n',
  '\r\n',
  '\r',
  'event: x\n',
  'id: 1\n',
  ': c\n',
  'retry: 1\n',
  '[DONE]',
  '\ufeff',
  'data: [DONE]\n\n',
];
const TOKENIZER_WORDS = [
  ...['added_tokens', 'normalizer', 'pre_tokenizer', 'post_processor', 'decoder', 'model', 'vocab', 'merges', 'type'],
  ...[
    'ByteLevel',
    'BPE',
    'Sequence',
    'Split',
    'Regex',
    'Replace',
    'Prepend',
    'Metaspace',
    'Unigram',
    'WordPiece',
    'NFC',
  ],
].map((word) => `"${word}"`);

const FIXTURE = modelFixture('optimum/qwen3');
let folder: string | undefined;
/** A folder with the small files of a model. */
function modelFolder(): string {
  if (folder === undefined) {
    folder = mkdtempSync(join(tmpdir(), 'assay-fuzz-'));
    for (const name of ['config.json', 'tokenizer_config.json']) cpSync(join(FIXTURE, name), join(folder, name));
  }
  return folder;
}

/** Lets refusals by a named error pass. */
async function named(read: () => unknown): Promise<boolean> {
  try {
    await read();
    return true;
  } catch (error) {
    if (error instanceof UpstreamFault || error instanceof RefusedContract) return false;
    if (error instanceof AssayError && error.code !== 'internal_error') return false;
    throw error;
  }
}

function checkTensors(value: TorchValue): void {
  if (value instanceof TorchTensor) {
    const count = value.dims.reduce((product, dim) => product * dim, 1);
    assert(value.dims.every((dim) => Number.isSafeInteger(dim) && dim >= 0) && value.values.length === count);
  } else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) checkTensors(one);
}

async function eventsOf(pieces: readonly Uint8Array[]): Promise<string> {
  const events: unknown[] = [];
  const whole = await named(async () => {
    const stream = (async function* () {
      yield* pieces;
    })();
    for await (const event of chatEvents(stream)) events.push(event);
  });
  return JSON.stringify({ whole, events });
}

export const TARGETS: Readonly<Record<string, FuzzTarget>> = {
  /**
   * The JSON reader. It accepts what an independent reading accepts; that survives writing and reading again, and every
   * leaf is JSON of its own.
   */
  json: {
    words: [...JSON_WORDS, '['.repeat(32), ']'.repeat(32), '\\\\', '\\\\"', '\\ud83d\\ude00', '\\udc00'],
    async run(bytes) {
      const accepted = await named(() => parseJson(bytes));
      checkVerdict(bytes, accepted);
      await named(() => {
        const text = JSON.stringify(parseJson(bytes));
        assert.equal(JSON.stringify(parseJson(new TextEncoder().encode(text))), text);
        for (const { start, end } of leavesOf(text)) JSON.parse(text.slice(start, end));
      });
    },
  },
  /** The schema compiler. */
  schema: {
    words: [...JSON_WORDS, ...SCHEMA_WORDS, ...REFERENCES],
    async run(bytes) {
      await named(() => {
        const schema = parseJson(bytes);
        checkAnswerSchema({ schema, param: 'schema' });
        checkAnswerSchema({ schema, jsonSchemaOnly: true, param: 'schema' });
      });
    },
  },
  /** The ONNX reader. */
  onnx: {
    words: [
      '\x08\x01',
      '\x3a\x00',
      '\x0a\xff\xff\xff\xff\x0f',
      '\x12\x02',
      '\x2a\x04',
      'location',
      '../x',
      '\xff\xff\xff\xff\xff\xff\xff\xff\x7f',
    ],
    async run(bytes) {
      const file = join(modelFolder(), 'model.onnx');
      writeFileSync(file, bytes);
      await named(() => readModel(file));
    },
  },
  /** The safetensors reader: every tensor that it names is within the file. */
  safetensors: {
    words: [
      ...JSON_WORDS,
      ...['dtype', 'shape', 'data_offsets', '__metadata__', 'F32', 'BF16', 'F4'].map((word) => `"${word}"`),
      '\x40\x00\x00\x00\x00\x00\x00\x00{',
      '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
    ],
    async run(bytes) {
      const file = join(modelFolder(), 'model.safetensors');
      writeFileSync(file, bytes);
      await named(() => {
        for (const { data, dims } of readSafetensors(file).values()) {
          assert('file' in data && data.offset + data.length <= bytes.length && dims.every(Number.isSafeInteger));
        }
      });
    },
  },
  /** The GGUF reader: every tensor that it names is within the file. */
  gguf: {
    words: [
      ...[
        'GGUF\x03\x00\x00\x00',
        'general.architecture',
        'llama',
        'general.alignment',
        'tokenizer.ggml.tokens',
        'blk.0.',
      ],
      ...[
        'token_embd.weight',
        '\x09\x00\x00\x00\x09\x00\x00\x00',
        '\x08\x00\x00\x00',
        '\xff\xff\xff\xff\xff\xff\xff\x7f',
      ],
    ],
    async run(bytes) {
      const file = join(modelFolder(), 'model.gguf');
      writeFileSync(file, bytes);
      await named(() => {
        const gguf = readGguf(file);
        for (const { data, dims } of gguf.tensors.values()) {
          assert('file' in data && data.offset + data.length <= bytes.length && dims.every(Number.isSafeInteger));
        }
        ggufTokenizer(gguf);
      });
    },
  },
  /** The reader of PyTorch's files: every tensor has as many values as its dimensions say. */
  torch: {
    words: [
      ...['PK\x03\x04', 'PK\x01\x02', 'PK\x05\x06', 'data.pkl', 'data/0', '\x80\x02', '\x8a\x02\x00\x01', 'QX'],
      ...['torch._utils\n_rebuild_tensor_v2\n', 'ctorch\nFloatStorage\n', 'ccollections\nOrderedDict\n', 'R', 'tq'],
      ...['K\x02', 'M\xff\xff', 'J\xff\xff\xff\x7f', '\x86', '\x87', ')', '}', ']', '(', 'u', 's', 'e', '.'],
    ],
    async run(bytes) {
      await named(() => checkTensors(readTorchFile(bytes)));
    },
  },
  /** The files of a tokenizer. A tokenizer that loads encodes a text or fails; it never hangs on a short one. */
  tokenizer: {
    words: [...JSON_WORDS, ...TOKENIZER_WORDS],
    async run(bytes) {
      writeFileSync(join(modelFolder(), 'tokenizer.json'), bytes);
      await named(() => loadTextModel(modelFolder()));
    },
  },
  /** The guard around chat templates. */
  template: {
    words: TEMPLATE_WORDS,
    async run(bytes) {
      const source = new TextDecoder().decode(bytes);
      await named(() => {
        const template = createChatTemplate(source, { bos_token: '<s>' }, { timeMs: 500, output: 10_000 });
        atOnce(template.render([{ role: 'user', content: 'Hello' }]));
        template.tools();
      });
    },
  },
  /** The event streams of boxes: the same events, however the bytes are cut. */
  events: {
    words: [...EVENT_WORDS, ...JSON_WORDS],
    async run(bytes) {
      const single = Array.from(bytes.subarray(0, 4096), (byte) => Uint8Array.of(byte));
      assert.equal(await eventsOf(single), await eventsOf([bytes.subarray(0, 4096)]));
    },
  },
};
