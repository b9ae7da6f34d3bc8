import type { Tool, ToolCallEvent } from '../../../lib/backend.ts';
import { ChatOutput, type OutputDelta, type SampledToken } from '../output/chat-output.ts';
import type { ReasoningFormat } from '../output/reasoning-format.ts';
import type { Trigger } from '../output/stop-scanner.ts';
import type { TextVocabulary } from '../tokenizer/vocabulary.ts';
import type { ToolConstraint } from './tool-constraint.ts';

/** Reads the arguments of a call as JSON from the text in which the model writes them. */
export interface CallReader {
  /**
   * Adds text. Returns the JSON text that it adds to the arguments.
   *
   * @param ended true if no more text of the arguments follows
   */
  push(text: string, ended: boolean): string;
}

interface ToolOutputOptions {
  constraint: ToolConstraint;
  /** Texts that begin a call. */
  triggers: readonly Trigger[];
  /** Returns a new reader for the arguments of one call to `tool`. */
  reader(tool: Tool): CallReader;
  stops: readonly string[];
  thinking: boolean;
  format: ReasoningFormat;
}

/** Converts sampled tokens to what the caller of a chat with tools reads: reasoning, text, then tool calls. */
export class ToolOutput {
  readonly #constraint: ToolConstraint;
  readonly #chat: ChatOutput;
  readonly #reader: ToolOutputOptions['reader'];
  readonly #readers: { reader: CallReader; given: number }[] = [];
  #calling = false;
  /** White space at the end of the text so far, which is withheld because it is dropped if a call follows. */
  #space = '';

  constructor(vocabulary: TextVocabulary, { constraint, reader, ...options }: ToolOutputOptions) {
    this.#constraint = constraint;
    this.#reader = reader;
    this.#chat = new ChatOutput(vocabulary, options);
  }

  get stopped(): boolean {
    return this.#chat.stopped;
  }

  /**
   * Returns the text and calls before this token that are now final. The engine passes the token to the grammar only
   * after this call.
   */
  push(sampled: SampledToken): OutputDelta {
    if (this.#calling) return this.#calls();
    // The last token may have completed a message's header, which is not part of the text.
    if (this.#constraint.calls.length > 0 || this.#constraint.inCall(sampled.token)) {
      this.#calling = true;
      return this.#text(this.#chat.end());
    }
    const delta = this.#text(this.#chat.push(sampled));
    this.#calling = this.#chat.triggered;
    return delta;
  }

  /** Returns the text and calls that are still withheld. Must follow the last `push`. */
  end(_cut?: boolean): OutputDelta {
    if (this.#calling || this.#constraint.calls.length > 0) return this.#calls();
    const delta = this.#text(this.#chat.end());
    return { ...delta, content: delta.content + this.#space };
  }

  #text(delta: OutputDelta): OutputDelta {
    const whole = this.#space + delta.content;
    const content = whole.trimEnd();
    this.#space = whole.slice(content.length);
    return { ...delta, content };
  }

  #calls(): OutputDelta {
    const calls = this.#constraint.calls.flatMap((call, index): ToolCallEvent[] => {
      if (!call.tool) return [];
      const known = this.#readers[index];
      const state = known ?? { reader: this.#reader(call.tool), given: 0 };
      this.#readers[index] = state;
      const text = state.reader.push(call.arguments.slice(state.given), call.argumentsEnded);
      state.given = call.arguments.length;
      if (known) return text === '' ? [] : [{ type: 'tool_call', index, arguments: text }];
      return [{ type: 'tool_call', index, name: call.tool.name, arguments: text }];
    });
    return { reasoning: '', content: '', logprobs: [], calls };
  }
}
