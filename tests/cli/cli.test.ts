import { readFileSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createProgram } from '../../adapters/node/cli/program.ts';
import { serverConfig } from '../../adapters/node/config.ts';
import { serve } from '../../adapters/node/serve.ts';
import { composeScripted } from '../scripted-backend/compose.ts';
import type { Recorded, Script } from '../scripted-backend/script.ts';
import { assay, BIN, newFolder, type Ran } from './assay.ts';

/** Starts a server with a scripted backend; the command line beside it shares its home. */
async function beside(script: Script = {}) {
  const home = await newFolder();
  const recorded: Recorded[] = [];
  const config = serverConfig({ port: '0', home, load: false }, {});
  const effects = { log: pino({ level: 'silent' }), say: () => undefined, terminal: true };
  const serving = await serve(config, { ...effects, compose: composeScripted(script, recorded) });
  onTestFinished(() => void serving.stop());
  const run = (args: readonly string[], input?: string | Buffer, env: Record<string, string> = {}): Promise<Ran> =>
    assay(args, {
      ...(input === undefined ? {} : { input }),
      env: { ASSAY_URL: serving.url, ASSAY_HOME: home, ...env },
    });
  return { run, recorded, home, url: serving.url };
}

/** Starts a server that claims to be Assay, and answers as `answer` does. */
async function stub(answer: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<string> {
  const server = createServer((request, response) => {
    response.setHeader('x-request-id', '1');
    if (request.method === 'GET' && request.url === '/health' && !request.headers.authorization) response.end(EDGE);
    else answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const EDGE = '{"status":"degraded","state":"loaded","device":"NPU","active_model":"a/b","boxes":3}';
const listOf = (...ids: string[]) =>
  JSON.stringify({
    object: 'list',
    data: ids.map((id) => ({ id, object: 'model', created: 0, owned_by: 'a', status: 'active' })),
  });
const DECIDED = JSON.stringify({
  id: '1',
  model: 'a/b',
  choices: [{ message: { role: 'assistant', content: '{"value":"yes"}' }, finish_reason: 'stop' }],
  result: { value: 'yes' },
  decision: { value: 'yes' },
  value: 'yes',
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

const FAULT = (code: string) => ({ code, message: `This is ${code}.` }) as { code: 'engine_failed'; message: string };

describe('decide', () => {
  const yes: Script = { tasks: { answers: ['{"value":"yes","reason":"It says so."}'] } };

  it('reads standard input and writes the bare answer; the reason goes to standard error', async () => {
    const { run, recorded } = await beside(yes);
    expect(await run(['decide', 'Is this urgent?', '--option', 'yes', '--option', 'no'], 'Help!\n')).toEqual({
      code: 0,
      out: 'yes\n',
      err: 'It says so.\n',
    });
    const asked = recorded.find(({ call }) => call === 'runTasks');
    expect(asked).toMatchObject({
      batch: { input: { context: 'Help!\n' }, tasks: [{ question: 'Is this urgent?', options: ['yes', 'no'] }] },
    });
  });

  it('reads texts with the line ends and the byte order mark of Windows', async () => {
    const { run, recorded } = await beside(yes);
    const file = join(await newFolder(), 'mail.txt');
    await writeFile(file, '\uFEFFHelp!\r\n\r\nBo\r\n');
    await run(['decide', 'Urgent?', '-o', 'yes', '-o', 'no', '-f', file]);
    await run(['decide', 'Urgent?', '-o', 'yes', '-o', 'no'], '\uFEFFHelp!\r\n\r\nBo\r\n');
    const context = 'Help!\n\nBo\n';
    expect(recorded.filter(({ call }) => call === 'runTasks')).toMatchObject([
      { batch: { input: { context } } },
      { batch: { input: { context } } },
    ]);
  });

  it('--image sends the file, and reads no standard input', async () => {
    const { run, recorded } = await beside(yes);
    const file = fileURLToPath(new URL('../fixtures/media/images/wide.png', import.meta.url));
    const { code } = await run(['decide', 'A cat?', '-o', 'yes', '-o', 'no', '--image', file, '-i', file], 'unread');
    expect(code).toBe(0);
    const source = { type: 'base64', mimeType: 'image/png', data: readFileSync(file).toString('base64') };
    const asked = recorded.find(({ call }) => call === 'runTasks');
    expect(asked).toMatchObject({ batch: { input: { context: '' }, media: [{ source }, { source }] } });
  });

  it.each(['short.wav', 'pair.mp3'])('--audio sends the file: %s', async (name) => {
    const { run, recorded } = await beside(yes);
    const file = fileURLToPath(new URL(`../fixtures/media/audio/${name}`, import.meta.url));
    const { code } = await run(['decide', 'Angry?', '-o', 'yes', '-o', 'no', '--audio', file], 'unread');
    expect(code).toBe(0);
    const mimeType = name.endsWith('mp3') ? 'audio/mpeg' : 'audio/wav';
    const source = { type: 'base64', mimeType, data: readFileSync(file).toString('base64') };
    const asked = recorded.find(({ call }) => call === 'runTasks');
    expect(asked).toMatchObject({ batch: { input: { context: '' }, media: [{ type: 'audio', source }] } });
  });

  it('--json prints the whole answer', async () => {
    const { run } = await beside(yes);
    const { out } = await run(['decide', 'Urgent?', '-o', 'yes', '-o', 'no', '--json'], 'x');
    expect(JSON.parse(out)).toMatchObject({
      value: 'yes',
      model: 'assay/starter',
      choices: [{ finish_reason: 'stop' }],
    });
  });

  it.each([
    ['yes', 0],
    ['no', 1],
  ])('--expect %s exits with %i', async (expected, code) => {
    const { run } = await beside(yes);
    expect((await run(['decide', 'Urgent?', '-o', 'yes', '-o', 'no', '--expect', expected], 'x')).code).toBe(code);
  });

  it('--probabilities shows a bar for each option, in the order given', async () => {
    const { run, recorded } = await beside({ tasks: { probabilities: [[0.25, 0.75]] } });
    const args = ['decide', 'Urgent?', '-o', 'yes', '-o', 'no', '-p', '--orders', '2', '--instruction', 'Be strict.'];
    const { code, out, err } = await run(args, 'x');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toBe(`no\nyes  ${'█'.repeat(6).padEnd(24)}   25.0%\nno   ${'█'.repeat(18).padEnd(24)}   75.0%\n`);
    expect(recorded.find(({ call }) => call === 'runTasks')).toMatchObject({
      batch: {
        tasks: [{ question: 'Urgent?\nBe strict.', options: ['yes', 'no'] }],
        probabilities: { orders: 2, calibrated: true },
      },
    });
  });

  it('--probabilities --json prints the numbers', async () => {
    const { run } = await beside({ tasks: { probabilities: [[0.25, 0.75]] } });
    const { out } = await run(['decide', 'Urgent?', '-o', 'yes', '-o', 'no', '--probabilities', '--json'], 'x');
    expect(JSON.parse(out)).toMatchObject({
      answers: { decision: { choice: 'no', probabilities: { yes: 0.25, no: 0.75 } } },
    });
  });

  it('--abstain-below gives no answer that is less sure, and none is what was expected', async () => {
    const { run } = await beside({ tasks: { probabilities: [[0.25, 0.75]] } });
    const args = ['decide', 'Urgent?', '-o', 'yes', '-o', 'no', '-p', '--abstain-below', '0.8', '--expect', 'no'];
    const { code, out, err } = await run(args, 'x');
    expect(code).toBe(1);
    expect(out).toMatch(/^yes {2}█/);
    expect(err).toContain('no option is probable enough');
  });

  it.each([
    [['decide', 'Urgent?', '-p', '-c', 'x'], '--probabilities needs options'],
    [['decide', 'Urgent?', '-o', 'a', '--orders', '2', '-c', 'x'], '--orders and --abstain-below need --probabilities'],
    [['decide', 'Urgent?', '-o', 'a', '-p', '--temperature', '1', '-c', 'x'], '--temperature changes nothing'],
    [['decide', 'Urgent?', '-o', 'a', '-p', '--orders', '9', '-c', 'x'], 'Use a whole number from 1 to 8.'],
    [['decide', 'Urgent?', '-o', 'a', '-p', '--abstain-below', '2', '-c', 'x'], 'Use a number from 0 to 1.'],
    [
      ['decide', 'Urgent?', '--option', 'yes', '--expect', 'maybe'],
      '--expect maybe is not one of the options. Use one of: yes.',
    ],
    [['decide', 'Urgent?', '--file', '/none.txt'], '/none.txt does not exist.'],
    [['decide', 'Urgent?', '--file', '/'], '/ is a folder.'],
    [['decide', 'Urgent?', '--image', '/none.png'], '/none.png does not exist.'],
    [['decide', 'Urgent?', '--image', BIN], 'is not an image of a supported type'],
    [['decide', 'Angry?', '--audio', '/none.wav'], '/none.wav does not exist.'],
    [['decide', 'Angry?', '--audio', BIN], 'is not a recording of a supported type'],
    [
      ['decide', 'Urgent?', '--file', 'x', '--context', 'y'],
      '--context and --file both give a text. Use only one of them.',
    ],
    [['decide', 'Urgent?', '--temperature', '3'], 'Use a number from 0 to 2.'],
    [['decide', 'Urgent?', '--language', 'xx', '-c', ''], "option '--language <code>' argument 'xx' is invalid"],
    [['decide', 'Urgent?', '-o', 'yes', '-o', 'yes'], "argument 'yes' is invalid. It is given twice."],
    [['extract', '-k', 'a', '-k', 'a'], "argument 'a' is invalid. It is given twice."],
    [['extract', '-c', 'x'], 'Say what to extract: give an instruction, --key or --schema.'],
    [
      ['decide'],
      "assay: missing required argument 'question'\n(Run npm run -s assay -- decide --help for its flags.)\n",
    ],
    [['decide', 'Urgent?', '--nonsense'], "unknown option '--nonsense'"],
    [['frobnicate'], "assay: unknown command 'frobnicate'\n(Run npm run -s assay -- --help for all commands.)\n"],
    [['keys', 'ad'], '(Run npm run -s assay -- keys --help for all commands.)\n'],
    [['keys', 'add'], '(Run npm run -s assay -- keys add --help for its flags.)\n'],
    [['pull', '../../etc/passwd'], 'A model id is <namespace>/<name>'],
    [['extract', '--schema', '{bad', '-c', 'x'], '--schema is not JSON'],
    [['run', '[bad', '-c', 'x'], 'The list of tasks is not JSON'],
    [['extract', '--schema', '/none.json', '-c', 'x'], '/none.json does not exist.'],
    [['ep', 'install', 'openvino', '--file', '/none.whl'], '/none.whl does not exist.'],
    [['decide', 'Urgent?', '-c', 'x', '-c', 'y'], "argument 'y' is invalid. It may be given only once."],
    [['extract', '-k', 'a', '-f', 'x', '--file', 'y'], "argument 'y' is invalid. It may be given only once."],
    [['chat', 'hi', '--system', 'x', '--system', ''], "argument '' is invalid. It may be given only once."],
    [['status', '--url', 'http://me:secret@127.0.0.1:1'], 'The address must have no name and password. Give the key'],
    [['run', '{"tasks":[],"model":5,"context":"x"}'], 'The request: model must be a string.'],
    [['run', '{"tasks":[],"context":"x"}', '-c', 'y'], 'assay: The request has a text already. Remove it there'],
    [['mcp', '--port', '8081'], '--port needs --http: add that flag.'],
    [['load', 'a/b', '--max-prompt-len', '8'], 'Use a whole number from 16 to 1048576.'],
  ])('%j is a mistake of the caller, with exit code 2', async (args, message) => {
    const { run } = await beside(yes);
    const { code, out, err } = await run(args, 'x');
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(message);
    expect(err).not.toMatch(/\n\s+at /);
  });

  it('says when the answer was cut', async () => {
    const cut = { names: ['result'], more: 0 };
    const { run } = await beside({ tasks: { finishReason: 'length', cut, answers: ['{"value":"ye"}'] } });
    expect((await run(['decide', 'Urgent?'], 'x')).err).toBe(
      "The answer was cut. Raise the token limit with --max-output-tokens. If that does not help, the input fills the model's context, or the answer repeats itself.\n",
    );
  });

  it('says what to do where no model is loaded', async () => {
    const { run } = await beside({
      active: { state: 'failed', model: 'assay/starter', device: 'CPU', reason: 'It broke.' },
    });
    const { code, err } = await run(['decide', 'Urgent?'], 'x');
    expect({ code, err }).toEqual({
      code: 4,
      err: 'assay: The server has no model loaded (state: error). It broke. Load one: npm run -s assay -- load assay/starter\n',
    });
  });
});

it('extract keeps the order of the fields, and numbers as they were written', async () => {
  const { run } = await beside({ tasks: { answers: ['{"10":"a","2":1.50}'] } });
  const args = ['extract', '-k', '10', '-k', '2', '-c', 'x'];
  expect(await run(args)).toEqual({ code: 0, out: '{\n  "10": "a",\n  "2": 1.50\n}\n', err: '' });
  expect((await run([...args, '--json'])).out).toContain('"result": {\n    "10": "a",\n    "2": 1.50\n  }');
});

it('extract prints the fields', async () => {
  const { run, recorded } = await beside({ tasks: { answers: ['{"vendor":"Acme","total":null}'] } });
  const schema = join(await newFolder(), 'schema.json');
  await writeFile(schema, '{"vendor":"string","total":"number"}');
  const { out } = await run(['extract', '--schema', schema], 'Invoice of Acme');
  expect(JSON.parse(out)).toEqual({ vendor: 'Acme', total: null });
  await run(['extract', 'The buyer', '-k', 'name', '-k', 'city', '-c', 'x']);
  expect(recorded.filter(({ call }) => call === 'runTasks').at(-1)).toMatchObject({
    batch: { tasks: [{ instruction: 'The buyer', shape: { keys: ['name', 'city'] } }] },
  });
});

it.each([
  [['decide', 'Urgent?', '-o', 'yes', '-o', 'no']],
  [['extract', '-k', 'name']],
  [['run', '[{"type":"decide","name":"a","question":"Urgent?","options":["yes","no"]}]']],
  [['chat']],
])('%s refuses input that is not UTF-8', async (args) => {
  const { run, recorded } = await beside();
  expect(await run(args, Buffer.from([0x47, 0x72, 0xfc, 0xdf, 0x65]))).toEqual({
    code: 2,
    out: '',
    err: 'assay: Standard input is not UTF-8 text. Convert it first, such as with iconv.\n',
  });
  expect(recorded).toEqual([]);
});

describe('run', () => {
  const tasks = [
    { type: 'decide', name: 'urgent', question: 'Urgent?', options: ['yes', 'no'] },
    { type: 'extract', name: '10', instruction: 'Who?', keys: ['name'] },
  ];
  const script: Script = { tasks: { answers: ['{"value":"no"}', '{"name":"Bo"}'] } };
  const fileOf = async (content: unknown): Promise<string> => {
    const file = join(await newFolder(), 'tasks.json');
    await writeFile(file, JSON.stringify(content));
    return file;
  };

  it('names the tasks whose answers were cut', async () => {
    const cut = { names: ['urgent', '10'], more: 0 };
    const { run } = await beside({ tasks: { ...script.tasks, finishReason: 'length', cut } });
    expect((await run(['run', await fileOf(tasks)], 'text')).err).toBe(
      "These answers were cut: urgent, 10. Raise the token limit with --max-output-tokens. If that does not help, the input fills the model's context, or the answer repeats itself.\n",
    );
  });

  it('takes the tasks from standard input with -, and then the text from elsewhere', async () => {
    const { run, recorded } = await beside(script);
    const input = JSON.stringify(tasks);
    expect(await run(['run', '-', '-c', 'text'], `\uFEFF${input}\r\n`)).toMatchObject({ code: 0, err: '' });
    expect(recorded.filter(({ call }) => call === 'runTasks')).toMatchObject([
      { batch: { input: { context: 'text' }, tasks: [{ name: 'urgent' }, { name: '10' }] } },
    ]);
    expect(await run(['run', '-'], input)).toEqual({
      code: 2,
      out: '',
      err: 'assay: Standard input was read already. Give the text with --context or --file.\n',
    });
  });

  it('takes a list of tasks and the text from standard input; results keep their order', async () => {
    const { run } = await beside(script);
    const { out } = await run(['run', await fileOf(tasks)], 'text');
    expect(out).toBe('{"urgent":{"value":"no"},"10":{"name":"Bo"}}\n');
  });

  it('takes a whole request, and what it says counts', async () => {
    const { run, recorded } = await beside(script);
    const request = { model: 'assay/starter', context: 'text', tasks, max_output_tokens: 7 };
    const { code, out } = await run(['run', await fileOf(request), '--json']);
    expect({ code, model: JSON.parse(out).model }).toEqual({ code: 0, model: 'assay/starter' });
    expect(recorded.find(({ call }) => call === 'runTasks')).toMatchObject({
      batch: { maxOutputTokens: 7, input: { context: 'text' } },
    });
  });

  it.each([
    ['--context', 'other'],
    ['--file', BIN],
  ])('refuses %s beside a text in the file', async (flag, value) => {
    const { run } = await beside(script);
    expect(await run(['run', await fileOf({ context: 'text', tasks }), flag, value])).toMatchObject({
      code: 2,
      err: expect.stringContaining('has a text already. Remove it there, or leave out --context and --file.'),
    });
  });

  it.each([[{ nothing: 1 }], ['text'], [null]])('refuses %j as a file of tasks', async (content) => {
    const { run } = await beside(script);
    expect(await run(['run', await fileOf(content)], 'x')).toMatchObject({
      code: 2,
      err: expect.stringContaining('must contain a list of tasks or'),
    });
  });
});

describe('chat', () => {
  it.each([
    [['chat'], '\n'],
    [['chat', ' '], undefined],
  ])('%j refuses an empty message', async (args, input) => {
    const { run, recorded } = await beside();
    expect(await run(args, input)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^assay: The message is empty\. /),
    });
    expect(recorded).toEqual([]);
  });

  const finish = { reason: 'stop', usage: { promptTokens: 1, completionTokens: 2 } } as const;
  const none = {
    queue_ms: 0,
    prompt_ms: 1,
    time_to_first_token_ms: 1,
    generation_ms: 1,
    total_ms: 2,
    prompt_tokens: 1,
    cached_tokens: 0,
    completion_tokens: 2,
    prompt_tokens_per_second: 1,
    tokens_per_second: 2,
    device: 'CPU',
  } as const;
  const chat: Script['chat'] = [
    { event: { type: 'start', model: 'assay/starter' } },
    { event: { type: 'reasoning', text: 'hm' } },
    { event: { type: 'content', text: 'Hello ' } },
    { event: { type: 'content', text: 'you.' } },
    { event: { type: 'finish', ...finish, metrics: none } },
  ];

  it('streams the answer, without the reasoning', async () => {
    const { run } = await beside({ chat });
    expect(await run(['chat', 'Hi'])).toEqual({ code: 0, out: 'Hello you.\n', err: '' });
    expect((await run(['chat', '--system', 'Be brief.'], 'Hi')).out).toBe('Hello you.\n');
  });

  it('--json prints the whole completion', async () => {
    const { run } = await beside({ chat });
    expect(JSON.parse((await run(['chat', 'Hi', '--json'])).out)).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { content: 'Hello you.' } }],
    });
  });

  it('reports an error in the middle of the stream, and keeps the text before it', async () => {
    const { run } = await beside({ chat: [...chat.slice(0, 3), { fail: FAULT('engine_failed') }] });
    expect(await run(['chat', 'Hi'])).toEqual({ code: 9, out: 'Hello \n', err: 'assay: This is engine_failed.\n' });
  });

  it('says when the answer was cut', async () => {
    const cut = { event: { type: 'finish', ...finish, reason: 'length', metrics: none } } as const;
    const { run } = await beside({ chat: [...chat.slice(0, -1), cut] });
    const { code, err } = await run(['chat', 'Hi']);
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining('--max-output-tokens') });
  });

  it('refuses --language, which chat does not have', async () => {
    const { run } = await beside({ chat });
    expect(await run(['chat', 'Hi', '--language', 'de'])).toMatchObject({
      code: 2,
      err: expect.stringContaining("unknown option '--language'"),
    });
  });

  const piece = `data: ${JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'a/b',
    choices: [{ index: 0, delta: { content: 'Half' }, finish_reason: null, logprobs: null }],
  })}\n\n`;

  it.each([
    ['ends before its last event', (response: ServerResponse) => response.end(piece), 9, 'before it was complete'],
    ['breaks', (response: ServerResponse) => response.write(piece, () => response.destroy()), 3, 'broke'],
  ])('a stream that %s is no answer', async (_, send, code, message) => {
    const ASSAY_URL = await stub((_, response) => send(response.setHeader('content-type', 'text/event-stream')));
    const ran = await assay(['chat', 'Hi', '--model', 'a/b'], { env: { ASSAY_URL, ASSAY_HOME: await newFolder() } });
    expect(ran).toEqual({ code, out: 'Half\n', err: expect.stringContaining(message) });
  });
});

describe('models', () => {
  it('status, list, load, unload and rm say what is and what was done', async () => {
    const { run, url } = await beside({
      models: [
        { id: 'assay/starter', status: 'active' },
        { id: 'acme/very-long-name', status: 'downloaded' },
      ],
      remove: {
        removed: [
          { kind: 'compiled', bytes: 1_234_567 },
          { kind: 'locks', bytes: 0 },
        ],
      },
    });
    expect((await run(['status'])).out).toBe(`server  ${url}\nstate   loaded\nmodel   assay/starter\ndevice  CPU\n`);
    expect((await run(['list'])).out).toBe(
      'MODEL                STATUS\nassay/starter        active\nacme/very-long-name  downloaded\n',
    );
    expect((await run(['load', 'acme/very-long-name'])).out).toMatch(
      /^acme\/very-long-name is loaded on the CPU \(\d+\.\d s, prompts up to \d+ tokens\)\.\n$/,
    );
    const loaded = await beside({ load: { report: { load_ms: 0 } } });
    expect((await loaded.run(['load', 'assay/starter'])).out).toBe(
      'assay/starter was loaded already on the CPU (prompts up to 4096 tokens).\n',
    );
    expect((await run(['unload'])).out).toMatch(/is unloaded\.\n$/);
    expect((await run(['rm', 'acme/tiny', '--compiled-only'])).out).toBe(
      'Removed compiled files (1.2 MB), lock files of acme/tiny.\n',
    );
  });

  it.each([
    [['status']],
    [['list']],
    [['load', 'assay/starter']],
    [['unload']],
    [['rm', 'acme/tiny']],
    [['pull', 'acme/tiny']],
    [['compile', 'acme/tiny']],
  ])('%j --json prints JSON and nothing else', async (args) => {
    const { run } = await beside();
    const { code, out, err } = await run([...args, '--json']);
    expect({ code, err, type: typeof JSON.parse(out) }).toEqual({ code: 0, err: '', type: 'object' });
  });

  it('an edge with one model is asked without --model', async () => {
    const url = await stub((request, response) => {
      if (request.url === '/health') response.end(EDGE);
      else if (request.url === '/v1/models') response.end(listOf('a/b'));
      else response.end(DECIDED);
    });
    const { code, out } = await assay(['decide', 'Urgent?', '-c', 'x'], { env: { ASSAY_URL: url } });
    expect({ code, out }).toEqual({ code: 0, out: 'yes\n' });
  });

  it('an edge with several models is asked for one of them', async () => {
    const url = await stub((request, response) =>
      response.end(request.url === '/health' ? EDGE : listOf('a/b', 'c/d')),
    );
    expect(await assay(['decide', 'Urgent?', '-c', 'x'], { env: { ASSAY_URL: url } })).toEqual({
      code: 2,
      out: '',
      err: `assay: ${url} has no single model to ask. Name one with --model. It has a/b, c/d.\n`,
    });
  });

  it.each([
    [['load', 'a/b'], 'is an edge: its boxes have the models. Name one of them with --url'],
    [['unload'], 'is an edge'],
    [['pull', 'a/b'], 'is an edge'],
    [['compile', 'a/b'], 'is an edge'],
    [['rm', 'a/b'], 'is an edge'],
    [['top', '--once'], 'An edge has no metrics'],
  ])('%j needs a box, not an edge', async (args, message) => {
    const error = { type: 'not_found_error', message: 'There is nothing at this path.', code: 'route_not_found' };
    const url = await stub((_, response) => response.writeHead(404).end(JSON.stringify({ error })));
    const { code, out, err } = await assay(args, { env: { ASSAY_URL: url } });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(message);
  });

  it('status of an edge describes its boxes together', async () => {
    const env = { ASSAY_URL: await stub(() => undefined), ASSAY_HOME: await newFolder() };
    expect(await assay(['status'], { env })).toEqual({
      code: 0,
      out: `server  ${env.ASSAY_URL}\nboxes   3: degraded\nstate   loaded\nmodel   a/b\ndevice  NPU\n`,
      err: '',
    });
  });

  it('compile for another length says how that is loaded', async () => {
    const { run } = await beside();
    const { out } = await run(['compile', 'acme/tiny', '--max-prompt-len', '1024']);
    expect(out).toMatch(/Load it with: npm run -s assay -- load acme\/tiny --max-prompt-len 1024\n$/);
  });

  it('pull shows progress in plain lines where nobody watches', async () => {
    const progress = (stage: 'downloading' | 'compiling', bytes: number, more = {}) =>
      ({ type: 'progress', stage, bytes, total: 2_000_000, ...more }) as const;
    const { run } = await beside({
      download: [
        progress('downloading', 0),
        { waitMs: 300 },
        progress('downloading', 1_000_000),
        progress('compiling', 500_000, { step: 'weights' }),
        { type: 'done', report: { bytes: 2_000_000, compiled: true } },
      ],
    });
    const { out, err } = await run(['pull', 'acme/tiny']);
    expect(err).toBe(
      'Downloading acme/tiny: 0 B of 2.0 MB (0 %)\nCompiling acme/tiny: 500 kB of 2.0 MB, weights (25 %)\n',
    );
    expect(out).toMatch(
      /^Fetched 2\.0 MB\. Compiled for prompts up to \d+ tokens\. Load it with: npm run -s assay -- load acme\/tiny\n$/,
    );
  });

  it('pull and load show the precision, and warn of one that is not accurate', async () => {
    const form = { precision: 'int8', precision_reason: 'asked for', precision_warning: 'It may be wrong.' } as const;
    const { run } = await beside({
      models: [{ id: 'acme/tiny', status: 'compiled' }],
      download: [{ type: 'done', report: form }],
      load: { report: form },
    });
    const told = 'Weights in int8: asked for.\nWarning: It may be wrong.\n';
    for (const command of ['pull', 'compile', 'load']) expect((await run([command, 'acme/tiny'])).err).toBe(told);
  });

  it('reports errors in one line, with their exit code', async () => {
    const { run } = await beside({ download: [{ fail: FAULT('disk_full') }], remove: { fail: FAULT('model_in_use') } });
    expect(await run(['pull', 'acme/tiny'])).toEqual({ code: 8, out: '', err: 'assay: This is disk_full.\n' });
    expect(await run(['rm', 'acme/tiny'])).toEqual({ code: 5, out: '', err: 'assay: This is model_in_use.\n' });
  });
});

describe('the server', () => {
  const NOWHERE = 'http://127.0.0.1:9';
  it.each([[['status']], [['load', 'a/b']], [['unload']]])(
    '%j without one is exit code 3, and says how to start it',
    async (args) => {
      const { code, err } = await assay(args, { env: { PORT: '9', ASSAY_HOME: await newFolder() } });
      expect({ code, err }).toEqual({
        code: 3,
        err: 'assay: No server is running at http://127.0.0.1:9. Start one with: npm run -s assay -- serve\n',
      });
    },
  );

  it('that was named must answer, also for commands that work without one', async () => {
    const { code, err } = await assay(['list', '--url', NOWHERE], { env: { ASSAY_HOME: await newFolder() } });
    expect({ code, err }).toEqual({
      code: 3,
      err: `assay: No Assay server answers at ${NOWHERE}. Is it running? Start one with: npm run -s assay -- serve\n`,
    });
  });

  it.each(['localhost:8080', 'nonsense'])('%s is no address, with exit code 2', async (url) => {
    const { code, err } = await assay(['status', '--url', url], { env: { ASSAY_HOME: await newFolder() } });
    expect({ code, err }).toEqual({
      code: 2,
      err: `assay: "${url}" is not a URL. Use one such as http://127.0.0.1:8080.\n`,
    });
  });

  it.each(['/', '/v1', '/v1/'])('may end with %s', async (end) => {
    const { url } = await beside();
    const { code, out } = await assay(['status', '--url', url + end], { env: { ASSAY_HOME: await newFolder() } });
    expect({ code, server: /^server +(.*)$/m.exec(out)?.[1] }).toEqual({ code: 0, server: url });
  });

  it('PORT that is no number is named, with exit code 2', async () => {
    const { code, err } = await assay(['status'], { env: { ASSAY_HOME: await newFolder(), PORT: 'abc' } });
    expect({ code, err }).toEqual({
      code: 2,
      err: 'assay: PORT is "abc". Set it to a number from 1 to 65535.\n',
    });
  });

  it('of another kind on the port is not mistaken for one', async () => {
    const other = createServer((_, response) => response.end('hello'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const PORT = String((other.address() as AddressInfo).port);
    expect((await assay(['status'], { env: { PORT, ASSAY_HOME: await newFolder() } })).code).toBe(3);
  });

  it('gets a key of its own from the home, which only its owner can read; a key that is given is used instead', async () => {
    const { run, home } = await beside();
    expect((await run(['decide', 'Urgent?'], 'x')).code).toBe(0);
    const file = join(home, 'cli-key');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const secret = await readFile(file, 'utf8');
    await run(['decide', 'Urgent?'], 'x');
    expect(await readFile(file, 'utf8')).toBe(secret);
    await run(['keys', 'revoke', 'cli']);
    expect((await run(['decide', 'Urgent?'], 'x')).code).toBe(0);
    expect(await readFile(file, 'utf8')).not.toBe(secret);
    const elsewhere = await run(['decide', 'Urgent?'], 'x', { ASSAY_HOME: await newFolder() });
    expect(elsewhere).toMatchObject({ code: 6, err: expect.stringContaining('Name its folder with --home') });
    const wrong = await run(['decide', 'Urgent?', '--api-key', 'wrong'], 'x');
    expect(wrong).toMatchObject({ code: 6, err: expect.stringContaining('not known here') });
  });
});

it.each([
  [['doctor', '--model', 'a/b'], { ASSAY_DTYPE: 'q5' }, '--dtype (ASSAY_DTYPE) must be one of '],
  [['doctor'], { ASSAY_ISOLATION: 'none' }, '--isolation (ASSAY_ISOLATION) must be one of '],
])('%j with %j says what to set', async (args, env, message) => {
  const { code, err } = await assay(args, { env });
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) });
});

describe('keys', () => {
  it('are added, listed without their secret, and revoked', async () => {
    const home = await newFolder();
    const run = (...args: string[]) => assay(['keys', ...args, '--home', home]);
    const some = ['--requests-per-minute', 'a/*=2', '--tokens-per-minute', 'a/*=90'];
    const limits = ['--requests-per-minute', '5', ...some, '--priority', 'batch'];
    const { out, err } = await run('add', 'shop', '--models', 'assay/*', ...limits);
    expect(err).toBe('This is the key shop. Keep it: it is shown only once, because only its hash is stored.\n');
    expect(out).toMatch(/^sk-assay-[\w-]{32}\n$/);
    expect((await run('list')).out).toMatch(
      /^NAME {2}.*\nshop {2}.*assay\/\* {2}5 requests a minute; a\/\*: 2 requests, 90 tokens a minute {2}batch$/m,
    );
    expect((await run('list')).out).not.toContain(out.trim());
    expect(JSON.parse((await run('list', '--json')).out)).toMatchObject([
      {
        name: 'shop',
        requestsPerMinute: 5,
        limits: [{ models: 'a/*', requestsPerMinute: 2, tokensPerMinute: 90 }],
        priority: 'batch',
      },
    ]);
    expect((await run('revoke', 'shop')).out).toBe('The key shop is revoked.\n');
    expect(await run('revoke', 'shop')).toMatchObject({
      code: 2,
      err: 'assay: There is no key named shop. List the keys: npm run -s assay -- keys list\n',
    });
    expect((await run('add', 'twice', '--json')).err).toBe('');
    expect((await run('add', 'twice')).code).toBe(2);
    expect((await run('add', 'bad name')).code).toBe(2);
    expect((await run('add', 'hurry', '--priority', 'urgent')).code).toBe(2);
    expect((await run('add', 'useless', '--models', 'assay/*,acme/*')).err).toContain('matches no model id');
    expect((await run('add', 'useless', '--tokens-per-minute', 'a=9')).err).toContain('limit for a matches no model');
    expect((await run('add', 'useless', '--tokens-per-minute', '9', '--tokens-per-minute', '8')).code).toBe(2);
    expect((await run('add', 'useless', '--models', 'assay/*', 'starter')).err).toBe(
      'assay: --models starter matches no model id. Use an id such as assay/starter, or a pattern such as assay/*; separate several by spaces.\n',
    );
  });
});

/** Returns the commands that help shows. */
function offered() {
  const program = createProgram({ compose: composeScripted() });
  return program
    .createHelp()
    .visibleCommands(program)
    .filter((command) => command.name() !== 'help');
}

describe('help', () => {
  const commands = offered();
  const leaves = commands.flatMap((command) => (command.commands.length > 0 ? command.commands : [command]));

  it('of every command has a description, --json and an example', () => {
    for (const command of leaves) {
      expect(command.description(), command.name()).not.toBe('');
      // `service` shows what systemctl prints.
      if (!['serve', 'mcp', 'completion'].includes(command.name()) && command.parent?.name() !== 'service')
        expect(
          command.options.map(({ long }) => long),
          command.name(),
        ).toContain('--json');
    }
    for (const command of commands) {
      let help = '';
      command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
      expect(help, command.name()).toMatch(/Examples?:\n(?:.*\n)* {2}\$ .*assay/);
    }
  });

  it('exits with 0, and so does --version', async () => {
    expect(await assay(['--version'])).toMatchObject({ code: 0, out: '0.5.0\n' });
    expect((await assay(['--help'])).code).toBe(0);
  });
});

it('docs/cli.md lists every command and every exit code', async () => {
  const page = await readFile(new URL('../../docs/cli.md', import.meta.url), 'utf8');
  const { EXIT } = await import('../../adapters/node/cli/exit-code.ts');
  for (const command of offered()) expect(page).toContain(`assay ${command.name()}`);
  const codes = [...page.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(codes).toEqual(Object.values(EXIT));
});

describe('what to do next', () => {
  it('with a server: its model, and the next commands', async () => {
    const { run, url } = await beside();
    const { code, out } = await run([]);
    expect(code).toBe(0);
    expect(out).toContain(`A server runs at ${url} and answers with assay/starter.`);
    expect(out).toContain(`${url}/playground`);
  });

  it('with a server without a model: how to load one', async () => {
    const { run } = await beside({ active: { state: 'unloaded', model: null, device: 'CPU' } });
    expect((await run([])).out).toMatch(/without a model\.[\s\S]*assay -- load assay\/starter/);
  });

  it('without a server: how to start one', async () => {
    const { code, out } = await assay([], { env: { PORT: '1' } });
    expect(code).toBe(0);
    expect(out).toMatch(/No server is running[\s\S]*assay -- serve[\s\S]*assay -- decide/);
  });
});

describe('top', () => {
  it('shows the figures of the server once, where output is no terminal', async () => {
    const { run } = await beside();
    const { code, out } = await run(['top', '--interval', '1']);
    expect(code).toBe(0);
    expect(out).toMatch(/^model +assay\/starter \(loaded\)$/m);
    expect(out).toMatch(/^requests running +\S+/m);
  });

  it('as JSON', async () => {
    const { run, url } = await beside();
    const figures = JSON.parse((await run(['top', '-n', '1', '--json'])).out);
    expect(figures).toMatchObject({ url, model: 'assay/starter' });
    expect(figures).toHaveProperty('completion_tokens_per_second');
  });
});

describe('completion', () => {
  it.each(['bash', 'zsh', 'fish'])('writes a script for %s', async (shell) => {
    const { code, out } = await assay(['completion', shell]);
    expect(code).toBe(0);
    expect(out).toMatch(/completion for assay/);
  });

  it.each([
    [['de'], 'decide'],
    [['decide', '--opt'], '--option'],
    [['keys', 'a'], 'add'],
  ])('completes %o with %s', async (typed, completed) => {
    const { out } = await assay(['complete', '--', ...typed]);
    expect(out.split('\n').map((line) => line.split('\t')[0])).toContain(completed);
  });
});
