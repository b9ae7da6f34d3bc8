import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import { styleText } from 'node:util';
import type { Command } from 'commander';
import * as v from 'valibot';
import { ChatCompletion, ChatCompletionChunk } from '../../../lib/schema/chat-completion.ts';
import type { Metrics } from '../../../lib/schema/metrics.ts';
import { type AskFlags, askFlags, withModel } from './ask.ts';
import type { Connection } from './connection.ts';
import { eventsOf } from './prepare.ts';
import { errorOf } from './request.ts';
import { isWatched, screen, shown } from './screen.ts';

type ChatFlags = AskFlags & { system?: string };
interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

/** `assay chat` */
export function addChat(program: Command): void {
  askFlags(
    program
      .command('chat')
      .description('Chat with the model; the answer is written as it comes.')
      .argument('[message]', 'what to say (default: standard input; on a terminal, a conversation)')
      .option('--system <text>', 'instructions for the whole conversation'),
  )
    .addHelpText('after', CHAT_HELP)
    .action((message: string | undefined, flags: ChatFlags) =>
      withModel(flags, async (connection, model) => {
        const talk: Message[] = flags.system === undefined ? [] : [{ role: 'system', content: flags.system }];
        if (message === undefined && process.stdin.isTTY) return converse(connection, model, talk, flags);
        talk.push({ role: 'user', content: message ?? (await text(process.stdin)) });
        await answer(connection, model, talk, flags);
      }),
    );
}

const CHAT_HELP = `
In a conversation, Ctrl-C stops the answer, and Ctrl-D or /exit ends the conversation. What a reasoning model thinks is shown on a
terminal, dimmed, and is never part of the output.

Examples:
  $ assay chat
  $ assay chat "Write a haiku about parcels."
  $ assay chat --system "You translate to German." < letter.txt`;

async function converse(connection: Connection, model: string, talk: Message[], flags: ChatFlags): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' });
  screen.note(`${model}. Ctrl-D or /exit ends the conversation.`);
  let stop: AbortController | null = null;
  terminal.on('SIGINT', () => (stop ? stop.abort() : terminal.close()));
  terminal.prompt();
  for await (const line of terminal) {
    if (line.trim() === '/exit') break;
    if (line.trim() !== '') {
      talk.push({ role: 'user', content: line });
      stop = new AbortController();
      try {
        talk.push({ role: 'assistant', content: await answer(connection, model, talk, flags, stop.signal) });
      } catch (error) {
        talk.pop();
        screen.note(stop.signal.aborted ? '\n(stopped)' : (error as Error).message);
      }
      stop = null;
    }
    terminal.prompt();
  }
  terminal.close();
}

/** Asks, writes the answer as it comes, and gives all of it. */
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
    return v.parse(ChatCompletion, completion).choices[0]?.message.content ?? '';
  }
  let content = '';
  for await (const data of eventsOf(response)) {
    const chunk = v.safeParse(v.pipe(v.string(), v.parseJson(), ChatCompletionChunk), data);
    if (!chunk.success) {
      const failure = errorOf(data);
      if (failure) throw failure;
      continue;
    }
    const delta = chunk.output.choices[0]?.delta;
    if (delta?.reasoning_content && isWatched())
      process.stderr.write(styleText('dim', shown(delta.reasoning_content, process.stderr)));
    if (delta?.content) {
      content += delta.content;
      screen.out(shown(delta.content));
    }
    if (chunk.output.metrics) finish(chunk.output.metrics);
  }
  return content;
}

function finish(metrics: Metrics): void {
  screen.out('\n');
  const { tokens_per_second: speed, time_to_first_token_ms: first, device } = metrics;
  if (!isWatched() || speed === null || first === null) return;
  screen.note(styleText('dim', `${speed.toFixed(1)} tokens/s, first after ${Math.round(first)} ms, on the ${device}`));
}
