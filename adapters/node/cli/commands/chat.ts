import { createInterface } from 'node:readline/promises';
import { styleText } from 'node:util';
import type { Command } from 'commander';
import * as v from 'valibot';
import { AssayError, messageOf } from '../../../../lib/errors.ts';
import { ChatCompletion, ChatCompletionChunk } from '../../../../lib/schema/chat-completion.ts';
import type { Metrics } from '../../../../lib/schema/metrics.ts';
import { COMMAND } from '../../command.ts';
import { UsageError } from '../../usage-error.ts';
import { type ModelFlags, modelFlags, warnIfCut, withModel } from '../ask.ts';
import { once } from '../parse-flags.ts';
import {
  type MediaFields,
  type MediaFlags,
  mediaFlags,
  readMedia,
  readStandardInput,
  type SentMedia,
} from '../read-input.ts';
import { type Connection, errorOf, eventsOf } from '../request.ts';
import { isWatched, screen, shown } from '../screen.ts';

type ChatFlags = ModelFlags & MediaFlags & { system?: string };
type ContentPart =
  | { type: 'image'; image: SentMedia }
  | { type: 'audio'; audio: SentMedia }
  | { type: 'text'; text: string };
type Content = string | ContentPart[];
interface Message {
  role: 'system' | 'user' | 'assistant';
  content: Content;
}

/** Adds the command `assay chat`. */
export function addChat(program: Command): void {
  modelFlags(
    mediaFlags(
      program
        .command('chat')
        .description('Chat with the model; the answer is printed as it is generated.')
        .argument('[message]', 'what to say (default: standard input; on a terminal, a conversation)')
        .option('--system <text>', 'instructions for the whole conversation', once),
      ', before the first message',
    ),
    "the model's own, else 1",
  )
    .addHelpText('after', CHAT_HELP)
    .action(async (message: string | undefined, flags: ChatFlags) => {
      const media = await readMedia(flags);
      const talks = message === undefined && process.stdin.isTTY;
      const said = talks ? undefined : (message ?? (await readStandardInput()));
      if (said?.trim() === '' && media.images === undefined && media.audio === undefined)
        throw new UsageError(`The message is empty. Give one: ${COMMAND} chat "Write a haiku about parcels."`);
      await withModel(flags, async (connection, model) => {
        const talk: Message[] = flags.system === undefined ? [] : [{ role: 'system', content: flags.system }];
        if (said === undefined) return converse(connection, model, talk, flags, media);
        talk.push({ role: 'user', content: shownWith(media, said) });
        await answer(connection, model, talk, flags);
      });
    });
}

const CHAT_HELP = `
In a conversation, Ctrl-C stops the answer, and Ctrl-D or /exit ends the conversation. Reasoning is shown dimmed on a terminal,
and is never part of the output.

Examples:
  $ assay chat
  $ assay chat "Write a haiku about parcels."
  $ assay chat --image photo.jpg "What is this?"
  $ assay chat --system "You translate to German." < letter.txt`;

/** Returns the content of a message: its text alone, or its images, its recordings and then its text. */
function shownWith({ images = [], audio = [] }: MediaFields, said: string): Content {
  if (images.length + audio.length === 0) return said;
  const shown: ContentPart[] = images.map((image) => ({ type: 'image', image }));
  const recordings: ContentPart[] = audio.map((recording) => ({ type: 'audio', audio: recording }));
  return [...shown, ...recordings, { type: 'text', text: said }];
}

async function converse(
  connection: Connection,
  model: string,
  talk: Message[],
  flags: ChatFlags,
  media: MediaFields,
): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' });
  screen.note(`${model}. Ctrl-D or /exit ends the conversation.`);
  let stop: AbortController | null = null;
  terminal.on('SIGINT', () => (stop ? stop.abort() : terminal.close()));
  terminal.prompt();
  for await (const line of terminal) {
    if (line.trim() === '/exit') break;
    if (line.trim() !== '') {
      const isFirst = talk.every(({ role }) => role !== 'user');
      talk.push({ role: 'user', content: isFirst ? shownWith(media, line) : line });
      stop = new AbortController();
      try {
        talk.push({ role: 'assistant', content: await answer(connection, model, talk, flags, stop.signal) });
      } catch (error) {
        talk.pop();
        screen.note(stop.signal.aborted ? '\n(stopped)' : messageOf(error));
      }
      stop = null;
    }
    terminal.prompt();
  }
  terminal.close();
}

/** Sends the conversation and prints the answer: as it arrives, or with `--json` as the response. Returns its text. */
async function answer(
  connection: Connection,
  model: string,
  messages: readonly Message[],
  flags: ChatFlags,
  signal?: AbortSignal,
): Promise<string> {
  const body = {
    model,
    messages,
    stream: !flags.json,
    ...(flags.temperature === undefined ? {} : { temperature: flags.temperature }),
    ...(flags.maxOutputTokens === undefined ? {} : { max_tokens: flags.maxOutputTokens }),
  };
  const accept = flags.json ? 'application/json' : 'text/event-stream';
  const response = await connection.request('/v1/chat/completions', { body, accept, ...(signal ? { signal } : {}) });
  if (flags.json) {
    const completion = await response.json();
    screen.json(completion);
    const said = v.parse(ChatCompletion, completion);
    warnIfCut(said);
    return said.choices[0]?.message.content ?? '';
  }
  return written(response);
}

/**
 * Prints a streamed answer as it arrives, and returns its whole text. Throws `AssayError` if the stream ends early or
 * reports an error, and `NoServerError` if the connection breaks.
 */
async function written(response: Response): Promise<string> {
  let content = '';
  let last: ChatCompletionChunk | undefined;
  try {
    for await (const chunk of chunksOf(response)) {
      const [choice] = chunk.choices;
      if (choice?.delta.reasoning_content && isWatched())
        process.stderr.write(styleText('dim', shown(choice.delta.reasoning_content, process.stderr)));
      if (choice?.delta.content) {
        content += choice.delta.content;
        screen.out(shown(choice.delta.content));
      }
      if (choice?.finish_reason) last = chunk;
    }
  } finally {
    if (content) screen.out('\n');
  }
  if (!last) throw new AssayError('engine_failed', 'The answer ended before it was complete. Ask again.');
  warnIfCut(last);
  if (last.metrics) tellSpeed(last.metrics);
  return content;
}

async function* chunksOf(response: Response): AsyncGenerator<ChatCompletionChunk> {
  for await (const data of eventsOf(response)) {
    const chunk = v.safeParse(v.pipe(v.string(), v.parseJson(), ChatCompletionChunk), data);
    if (chunk.success) yield chunk.output;
    const failure = chunk.success ? null : errorOf(data);
    if (failure) throw failure;
  }
}

function tellSpeed(metrics: Metrics): void {
  const { tokens_per_second: speed, time_to_first_token_ms: first, device } = metrics;
  if (!isWatched() || speed === null || first === null) return;
  screen.note(styleText('dim', `${speed.toFixed(1)} tokens/s, first after ${Math.round(first)} ms, on the ${device}`));
}
