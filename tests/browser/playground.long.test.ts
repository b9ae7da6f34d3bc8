import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { HubServer } from '../hub/hub-server.ts';
import { newBase, type ServerProcess, startServer } from '../model-server/server.ts';
import { fixtureModel } from '../registry/machine.ts';
import { hasChromium, launch } from './chromium.ts';

/*
 * The pages in a real browser, against a real server with the starter model and a hub on this machine. Install Debian's
 * `chromium`, or name another browser with CHROMIUM_PATH.
 */

const KEY = 'browser-test';
const run = promisify(execFile);

describe.skipIf(!hasChromium)('in Chromium', () => {
  let hub: HubServer;
  let server: ServerProcess;
  let browser: Browser;
  let page: Page;
  let foreign: string[];
  let complaints: string[];
  /** Text of complaints that a test causes. The browser may log them late. */
  let expected: string;

  beforeAll(async () => {
    hub = await HubServer.start(await fixtureModel('optimum/qwen3', 'acme/qwen3'));
    server = await startServer(hub, await newBase(), ['--api-key', KEY]);
    browser = await launch();
    await vi.waitUntil(async () => (await server.health()).state === 'loaded', { timeout: 60_000, interval: 200 });
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await hub?.stop();
  });

  beforeEach(async () => {
    foreign = [];
    complaints = [];
    expected = '';
    page = await open({ width: 1280, height: 900 });
  });
  afterEach(async () => {
    await page.context().close();
    expect(foreign).toEqual([]);
    expect(complaints.filter((text) => expected === '' || !text.includes(expected))).toEqual([]);
  });

  async function open(viewport: { width: number; height: number }, path = '/playground'): Promise<Page> {
    const context = await browser.newContext({ viewport });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const opened = await context.newPage();
    opened.on('request', (request) => {
      if (!request.url().startsWith(server.url) && !request.url().startsWith('data:')) foreign.push(request.url());
    });
    opened.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    opened.on('pageerror', (error) => complaints.push(error.message));
    await opened.goto(`${server.url}${path}`);
    return opened;
  }

  const ask = () => page.getByRole('button', { name: 'Ask', exact: true }).click();

  it('asks the tasks of an example and shows an answer for each', async () => {
    await page.getByLabel('API key').fill(KEY);
    await ask();
    await page.locator('.answer').nth(2).waitFor();
    expect(await page.locator('.answer h3').allTextContents()).toEqual([
      'refund',
      'topic',
      'facts',
      'Found in the context',
    ]);
    const bars = await page
      .locator('.options')
      .first()
      .locator('meter')
      .evaluateAll((all) => all.map((bar) => Number(bar.getAttribute('value'))));
    expect(bars.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 5);
    expect(await page.locator('.options').first().locator('.chosen').textContent()).toMatch(/yes|no/);
    expect(await page.locator('mark').allTextContents()).toContain('mug');
    expect(await page.locator('.figures').textContent()).toMatch(/ms · \d+ prompt tokens/);
  });

  it('evaluates a file of labels, and copies the command for the error that is chosen', async () => {
    await page.getByLabel('API key').fill(KEY);
    await page.getByRole('tab', { name: 'Evaluate' }).click();
    const line = (input: string, label: boolean) =>
      JSON.stringify({
        input,
        type: 'predicate',
        name: 'refund',
        instructions: 'Does the customer want a refund?',
        label,
      });
    const lines = [line('Please refund my money!', true), line('Thank you, all is well.', false)];
    const labels = (text: string) => ({
      name: 'labels.jsonl',
      mimeType: 'application/x-ndjson',
      buffer: Buffer.from(text),
    });
    const field = page.getByLabel('Labelled questions');
    await field.setInputFiles(labels('{"input": "x"}'));
    await page.getByText('Line 1: ').waitFor();
    await field.setInputFiles(labels(lines.join('\n')));
    await page.locator('#panel-Evaluate .figures').getByText('2 labels').waitFor();
    expect(
      await page
        .locator('#panel-Evaluate img')
        .evaluateAll((all) => all.map((one) => (one as HTMLImageElement).naturalWidth > 0)),
    ).toEqual([true, true]);
    expect(await page.locator('#panel-Evaluate tbody tr').allTextContents()).toEqual([
      expect.stringMatching(/^refund2\d+\.\d%$/),
    ]);
    await page.getByLabel('Error that is acceptable').selectOption('0.1');
    await page.locator('#panel-Evaluate').getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
      'assay calibrate labels.jsonl --target-error 0.1',
    );
  });

  it('asks for typed fields and marks them in the text', async () => {
    await page.getByLabel('API key').fill(KEY);
    await page.getByRole('button', { name: 'Extractions', exact: true }).click();
    await page.getByText('Request as code').click();
    expect(await page.locator('pre code').textContent()).toContain('/v1/extractions');
    await ask();
    await page.locator('.answer dd').first().waitFor();
    expect(await page.locator('.answer dt').first().textContent()).toBe('invoice number');
    expect(await page.locator('mark').allTextContents()).toContain('INV-7');
  });

  it('is where a browser gets from the root, and asks nothing while the model is being loaded', async () => {
    await page.route('**/health', (route) =>
      route.fulfill({ json: { status: 'loading', state: 'loading', device: 'CPU', active_model: 'none' } }),
    );
    await page.goto(server.url);
    expect(page.url()).toBe(`${server.url}/playground`);
    const loading = page.getByRole('button', { name: 'Loading the model…' });
    await loading.waitFor();
    expect(await loading.isDisabled()).toBe(true);
    await page.getByRole('tab', { name: 'Chat' }).click();
    await page.getByLabel('Message').fill('Hello!');
    await page.keyboard.press('Enter');
    expect(await loading.isDisabled()).toBe(true);
    expect(await page.getByLabel('Message').inputValue()).toBe('Hello!');
    await page.getByRole('tab', { name: 'Tasks' }).click();
    await page.unroute('**/health');
    await page.getByRole('button', { name: 'Ask', exact: true }).waitFor();
  });

  it('adds an image to the request, and removes it', async () => {
    await page.getByText('Request as code').click();
    const field = page.getByLabel('Image or recording');
    await field.setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') });
    expect(await page.getByRole('alert').textContent()).toContain('notes.txt is neither an image nor a recording');
    await field.setInputFiles(fileURLToPath(new URL('../../docs/images/playground.png', import.meta.url)));
    await page.getByRole('img', { name: 'playground.png' }).waitFor();
    const focused = (name: string) => page.getByRole('button', { name }).evaluate((it) => it.matches(':focus'));
    expect(await focused('Remove playground.png')).toBe(true);
    const code = page.getByRole('region', { name: 'Request as code' });
    expect(await code.textContent()).toContain('"data:image/png;base64,BASE64_OF_playground.png"');
    await page.getByRole('button', { name: 'Remove playground.png' }).click();
    await field.waitFor();
    expect(await focused('Image or recording')).toBe(true);
    expect(await code.textContent()).not.toContain('input_image');
  });

  it('adds, edits, reorders and deletes tasks with the keyboard alone', async () => {
    await page.getByLabel('API key').fill(KEY);
    const focused = () =>
      page.evaluate<string>('(({ ariaLabel, value }) => ariaLabel ?? value)(document.activeElement)');
    await page.getByRole('button', { name: 'Add task' }).press('Enter');
    await page.getByLabel('Name').nth(3).fill('late');
    await page.getByLabel('Question', { exact: true }).last().fill('Did it come late?');
    await page.getByRole('button', { name: 'Move late up' }).press('Enter');
    expect(await focused()).toBe('Move late up');
    await page.getByRole('button', { name: 'Move refund down' }).press('Enter');
    await page.keyboard.press('Tab');
    await page.getByRole('button', { name: 'Move refund up' }).press('Enter');
    // The first task cannot move up.
    expect(await focused()).toBe('Move refund down');
    await page.getByRole('button', { name: 'Delete topic' }).press('Enter');
    expect(await focused()).toBe('late');
    await page.getByLabel('Context').press('Control+Enter');
    await page.locator('.answer').nth(2).waitFor();
    expect(await page.locator('.answer h3').allTextContents()).toEqual([
      'refund',
      'late',
      'facts',
      'Found in the context',
    ]);
  });

  it.each(['curl', 'Python', 'TypeScript'])('gives the request as %s, and that program works', async (language) => {
    await page.getByText('Request as code').click();
    await page.getByLabel('Language').selectOption(language);
    await page.getByRole('button', { name: 'Copy' }).click();
    const code = await page.evaluate<string>('navigator.clipboard.readText()');
    const program = { curl: 'sh', Python: 'python3', TypeScript: process.execPath }[language] ?? '';
    const flags = language === 'TypeScript' ? ['--input-type=module', '-e'] : ['-c'];
    const output = async (key: string) => {
      const env = { ...process.env, ASSAY_API_KEY: key };
      const { stdout, stderr } = await run(program, [...flags, code], { env }).catch((failed) => failed);
      return `${stdout}${stderr}`;
    };
    const answered = await output(KEY);
    expect(answered).toMatch(/refund/);
    // Each probability is shown: no `[Object]` in place of one.
    expect(answered).toMatch(/evidence.*start/s);
    expect(await output('wrong')).toContain('invalid_api_key');
  });

  it('selects the code where the browser has no clipboard, as on http and another machine', async () => {
    await page.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
    await page.reload();
    await page.getByText('Request as code').click();
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Selected: press Ctrl + C' }).waitFor();
    expect(await page.evaluate<string>('getSelection().toString()')).toMatch(/^curl.*JSON$/s);
  });

  it('gives a new task the focus and a name of its own', async () => {
    await page.getByRole('button', { name: 'Add task' }).press('Enter');
    await page.keyboard.type('Is it new?');
    expect(await page.getByLabel('Question', { exact: true }).last().inputValue()).toBe('Is it new?');
    await page.getByRole('button', { name: 'Delete topic' }).press('Enter');
    await page.getByRole('button', { name: 'Add task' }).press('Enter');
    const names = page.getByLabel('Name');
    expect(await names.evaluateAll((fields) => fields.map((field) => (field as { value?: string }).value))).toEqual([
      'refund',
      'facts',
      'task_4',
      'task_5',
    ]);
  });

  it('asks for the number of tokens if the field is empty', async () => {
    await page.getByLabel('API key').fill(KEY);
    await page.getByLabel('Max output tokens').fill('');
    await ask();
    expect(await page.getByLabel('Max output tokens').evaluate((field) => field.matches(':invalid:focus'))).toBe(true);
    await page.getByLabel('Max output tokens').fill('64');
    await ask();
    await page.locator('.answer').first().waitFor();
  });

  it('keeps what was typed when the page is reloaded, and asks before an example replaces it', async () => {
    const context = page.getByLabel('Context');
    await page.getByRole('button', { name: 'An invoice' }).click();
    await context.fill('A text of mine 😀');
    await page.getByRole('button', { name: 'Delete currency' }).click();
    await page.reload();
    expect(await context.inputValue()).toBe('A text of mine 😀');
    expect(await page.getByLabel('Name').evaluateAll((fields) => fields.length)).toBe(1);
    page.once('dialog', (dialog) => void dialog.dismiss());
    await page.getByRole('button', { name: 'A complaint' }).click();
    expect(await context.inputValue()).toBe('A text of mine 😀');
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'A complaint' }).click();
    expect(await context.inputValue()).toMatch(/^The parcel/);
  });

  it('goes back to the tab before', async () => {
    const tab = () => page.locator('[role=tab][aria-selected=true]').textContent();
    await page.getByRole('tab', { name: 'Chat' }).click();
    await page.getByRole('tab', { name: 'Chat' }).press('ArrowRight');
    expect(await tab()).toBe('Evaluate');
    await page.goBack();
    expect(await tab()).toBe('Chat');
    await page.goBack();
    expect(await tab()).toBe('Tasks');
    await page.goForward();
    expect(await tab()).toBe('Chat');
  });

  it('can be stopped, tells a screen reader how many answers came, and asks again', async () => {
    await page.getByLabel('API key').fill(KEY);
    await page.route('**/v1/decisions', () => {}, { times: 1 });
    const status = page.getByRole('tabpanel').getByRole('status');
    await ask();
    await status.getByText('Asking').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Press “Ask”').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    await ask();
    await status.getByText('3 answers').waitFor();
  });

  it('asks for the key in the words of the page, and shows it on a phone', async () => {
    const phone = await open({ width: 320, height: 640 });
    await phone.getByRole('button', { name: 'Ask', exact: true }).click();
    const alert = phone.getByRole('alert');
    expect(await alert.locator('strong').textContent()).toBe('Paste your key into “API key” above.');
    const box = await alert.boundingBox();
    expect(box && box.y >= 0 && box.y + box.height <= 640).toBe(true);
    await phone.context().close();
    expected = '401';
  });

  it('asks free questions without probabilities', async () => {
    await page.getByLabel('API key').fill(KEY);
    await page.getByLabel('Options').first().fill('');
    expect(await page.getByLabel('Probabilities').isDisabled()).toBe(true);
    await ask();
    await page.locator('.answer').nth(2).waitFor();
    expect(await page.locator('meter').count()).toBe(0);
  });

  it('streams a chat', async () => {
    await page.getByRole('tab', { name: 'Chat' }).click();
    await page.getByLabel('Message').fill('Hello! Who are you?');
    await page.keyboard.press('Enter');
    await page.locator('.message.assistant small').waitFor();
    expect(await page.locator('.message.assistant p').textContent()).toMatch(/\w+/);
  });

  it('follows a long answer until the user scrolls up, and says that its connection was lost', async () => {
    await page.addInitScript(() => {
      const send = fetch;
      const delta = (n: number) => JSON.stringify({ choices: [{ delta: { content: `Line ${n}.\n` } }] });
      // As many lines as the test allows, and after 150 the error with which a browser reports a lost connection.
      const lines = (at: number) =>
        new ReadableStream({
          async pull(controller) {
            do await new Promise((resolve) => setTimeout(resolve, 5));
            while (at >= Number(document.body.dataset.allowed ?? 60));
            if (at === 150) controller.error(new TypeError('network error'));
            else controller.enqueue(new TextEncoder().encode(`data: ${delta(at)}\n\n`));
            at += 1;
          },
        });
      globalThis.fetch = (path, init) =>
        String(path).includes('chat') ? Promise.resolve(new Response(lines(0))) : send(path, init);
    });
    await page.reload();
    await page.getByRole('tab', { name: 'Chat' }).click();
    await page.getByLabel('Message').fill('Count.');
    await page.keyboard.press('Enter');
    const allow = (count: number) => page.evaluate(`document.body.dataset.allowed = ${count}`);
    const toEnd = () => page.evaluate<number>('document.documentElement.scrollHeight - innerHeight - scrollY');
    await page.getByText('Line 59.').waitFor();
    await expect.poll(toEnd).toBeLessThan(60);
    await page.mouse.move(600, 300);
    await page.mouse.wheel(0, -600);
    await expect.poll(toEnd).toBeGreaterThan(500);
    await allow(120);
    await page.getByText('Line 119.').waitFor();
    expect(await toEnd()).toBeGreaterThan(500);
    await allow(151);
    await page.getByRole('alert').getByText('The stream ended before the answer did. Ask again.').waitFor();
  });

  it('sends an image with a message of a chat, and keeps it for another attempt if it is refused', async () => {
    await page.getByRole('tab', { name: 'Chat' }).click();
    const field = page.getByLabel('Add an image or a recording');
    await field.setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from('x') });
    await page.getByRole('img', { name: 'dot.png' }).waitFor();
    await page.getByLabel('Message').fill('What is this?');
    const sent = page.waitForRequest('**/v1/chat/completions');
    await page.keyboard.press('Enter');
    expect((await sent).postDataJSON().messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:image/png;base64,eA==' } },
          { type: 'text', text: 'What is this?' },
        ],
      },
    ]);
    // The starter model reads text only.
    expect(await page.getByRole('alert').textContent()).toContain('unsupported_modality');
    expect(await page.getByLabel('Message').inputValue()).toBe('What is this?');
    await page.getByRole('button', { name: 'Remove dot.png' }).click();
    await field.waitFor();
    // The browser itself logs the refused request.
    expected = '400';
  });

  it('pulls a model with progress, loads it, and deletes it after unloading', async () => {
    await page.getByRole('tab', { name: 'Models' }).click();
    await page.getByLabel('Pull a model').fill('acme/qwen3');
    await page.getByRole('button', { name: 'Pull', exact: true }).click();
    const row = page.getByRole('row').filter({ hasText: 'acme/qwen3' });
    await row.getByText('compiled').waitFor({ timeout: 60_000 });
    await row.getByRole('button', { name: 'Load acme/qwen3', exact: true }).click();
    await row.getByText('active').waitFor({ timeout: 60_000 });
    await row.getByRole('button', { name: 'Unload' }).click();
    await row.getByText('compiled').waitFor();
    page.on('dialog', (dialog) => void dialog.accept());
    await row.getByRole('button', { name: 'Delete' }).click();
    await row.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Load assay/starter' }).click();
    await page.getByRole('row').filter({ hasText: 'assay/starter' }).getByText('active').waitFor({ timeout: 60_000 });
  });

  it('shows what another tab does with the models, and recovers when the server answers again', async () => {
    const other = await open({ width: 1280, height: 900 }, '/playground#models');
    await page.getByRole('tab', { name: 'Models' }).click();
    await page.getByRole('button', { name: 'Unload assay/starter' }).click();
    await page.getByText('assay/starter is unloaded.').waitFor();
    await other.getByRole('button', { name: 'Load assay/starter', exact: true }).click();
    await other.getByText('assay/starter is loaded.').waitFor({ timeout: 60_000 });
    await page.getByRole('row').filter({ hasText: 'assay/starter' }).getByText('active').waitFor();
    await page.route(/health|models/, (route) => route.abort());
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    await page.unrouteAll();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await other.context().close();
    expected = 'ERR_FAILED';
  });

  it('loads a model while another is pulled, and shows how a pull went on', async () => {
    const repair = hub.fail({ on: 'content', fault: { kind: 'throttle', bytesPerSecond: 60_000 } });
    await page.getByRole('tab', { name: 'Models' }).click();
    await page.getByLabel('Pull a model').fill('acme/qwen3');
    await page.getByRole('button', { name: 'Pull', exact: true }).click();
    await page.getByText(/^\d+ kB of \d+ kB, \d.* left$/).waitFor();
    await page.getByRole('button', { name: 'Unload assay/starter' }).click();
    await page.getByText('assay/starter is unloaded.').waitFor();
    await page.getByRole('button', { name: 'Load assay/starter', exact: true }).click();
    await page.getByText('assay/starter is loaded.').waitFor({ timeout: 60_000 });
    await page.getByText('acme/qwen3 is on this machine. Load it to ask it.').waitFor({ timeout: 60_000 });
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Delete acme/qwen3' }).click();
    await page.getByText('acme/qwen3 is deleted.').waitFor();
    repair();
  });

  it('greys out what a decision model cannot do, and says why', async () => {
    const can = { decide: 'options', extract: false, chat: false, abstains: false, max_tokens: 512, max_options: 99 };
    await page.route('**/v1/models', async (route) => {
      const list = (await (await route.fetch()).json()) as { data: object[] };
      await route.fulfill({ json: { ...list, data: list.data.map((one) => ({ ...one, capabilities: can })) } });
    });
    await page.getByLabel('API key').fill(KEY);
    await page.reload();
    await page.getByRole('tab', { name: 'Chat', disabled: true }).waitFor();
    const tasks = page.getByRole('group').filter({ has: page.locator('legend', { hasText: 'Task' }) });
    expect(await tasks.locator('.obstacle').allTextContents()).toEqual([
      'The loaded model answers questions with options and extracts nothing.',
    ]);
    expect(await page.getByRole('option', { name: 'extract', exact: true }).first().isDisabled()).toBe(true);
    await page.goto(`${server.url}/playground#chat`);
    await page.getByText('does not chat. Load a chat model.').waitFor();
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
  });

  it('says what to do about a wrong key, and keeps the key in this tab only', async () => {
    await page.getByLabel('API key').fill('wrong');
    await ask();
    expect(await page.getByRole('alert').textContent()).toMatch(/Paste your key.*invalid_api_key/s);
    expect(await page.evaluate("[sessionStorage.getItem('assay-api-key'), localStorage.length]")).toEqual(['wrong', 0]);
    // The browser itself logs the refused request.
    expected = '401';
  });

  it('says that no key has such a character, and still shows the state of the server', async () => {
    await page.getByLabel('API key').fill('schlüssel😀');
    await ask();
    expect(await page.getByRole('alert').textContent()).toContain('contains a character that no key has');
    await page.getByRole('contentinfo').getByText('assay/starter').waitFor();
    await page.reload();
    await page.getByRole('contentinfo').getByText('assay/starter').waitFor();
  });

  it('reads what needs a key once, if the server refuses the key', async () => {
    let asked = 0;
    await page.goto('about:blank');
    await page.route('**/metrics', (route) => {
      asked += 1;
      return route.fulfill({ status: 401, json: { error: { message: 'Send a key.', code: 'missing_api_key' } } });
    });
    await page.goto(`${server.url}/playground`);
    for (let polls = 0; polls < 3; polls += 1) await page.waitForResponse('**/health');
    expect(asked).toBe(1);
    await page.getByLabel('API key').fill('another');
    await page.keyboard.press('Tab');
    // The browser itself logs the refused requests.
    await vi.waitUntil(() => complaints.length === 2);
    expect(asked).toBe(2);
    complaints = [];
  });

  it('does not call the server lost before its first answer', async () => {
    await page.route('**/health', () => {});
    await page.reload();
    expect(await page.getByRole('contentinfo').textContent()).toBe('Connecting…');
  });

  it('plays a recording under its policy', async () => {
    const field = page.getByLabel('Image or recording');
    await field.setInputFiles(fileURLToPath(new URL('../fixtures/media/audio/short.wav', import.meta.url)));
    const audio = page.getByLabel('short.wav', { exact: true });
    await audio.waitFor();
    await vi.waitUntil(() => audio.evaluate((element) => (element as { duration?: number }).duration));
  });

  /** Returns the serious accessibility faults of a page. */
  async function seriousFaults(looked: Page) {
    // As code of the test, not of the page: the page's own policy forbids foreign scripts.
    const { violations } = await looked.evaluate(`${axe.source}; axe.run()`).then((result) => result as axe.AxeResults);
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    return serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
  }

  // A page has all its parts as soon as `ready` is shown. The API reference takes seconds to draw: it is opened once.
  it.each([
    ['/playground', '.dot.loaded'],
    ['/playground#evaluate', '#labels'],
    ['/playground#chat', '.dot.loaded'],
    ['/playground#models', '.badge.active'],
    ['/docs', '.opblock'],
    ['/docs#/decision%20formats/createDecision', '.responses-table .microlight'],
  ])('%s has no serious accessibility fault in any scheme, and fits a small phone', async (path, ready) => {
    const looked = await open({ width: 1280, height: 900 }, path);
    await looked.locator(ready).first().waitFor();
    if (path === '/docs') expect(await looked.locator('.servers select').inputValue()).toBe(server.url);
    for (const colorScheme of ['light', 'dark'] as const) {
      await looked.emulateMedia({ colorScheme });
      expect([colorScheme, await seriousFaults(looked)]).toEqual([colorScheme, []]);
    }
    await looked.setViewportSize({ width: 320, height: 640 });
    const [content, screen] = await looked.evaluate<[number, number]>('[document.body.scrollWidth, window.innerWidth]');
    expect(content).toBeLessThanOrEqual(screen);
    await looked.context().close();
  });

  it.each(['/playground/icon.svg', '/favicon.ico'])('has an icon at %s that browsers can show', async (path) => {
    const draw = `const icon = new Image(); icon.src = ${JSON.stringify(path)}; icon.decode().then(() => icon.width)`;
    expect(await page.evaluate(draw)).toBeGreaterThan(0);
  });

  it('has an index of the documentation whose links work', async () => {
    const index = await (await fetch(`${server.url}/llms.txt`)).text();
    const links = [...index.matchAll(/\]\((\/[^)]+)\)/g)].map(([, path]) => path);
    expect(links.length).toBeGreaterThan(8);
    for (const path of links) expect([path, (await fetch(`${server.url}${path}`)).status]).toEqual([path, 200]);
  });
});
