import { type ModelText, readModelText } from './model-files.ts';
import type { MediaText } from './segment.ts';
import { type ChatTemplate, createChatTemplate } from './template/chat-template.ts';
import { isToolUse } from './template/template-message.ts';
import { createTokenizer, type Tokenizer, tokenText } from './tokenizer/tokenizer.ts';
import { createVocabulary, type TextVocabulary } from './tokenizer/vocabulary.ts';
import { codeControls } from './tools/call-grammar.ts';

/** Holds everything that converts between text and a model's tokens. */
export interface TextModel {
  tokenizer: Tokenizer;
  vocabulary: TextVocabulary;
  template: ChatTemplate;
  /** Writes images or recordings into prompts; absent if the model reads none. */
  media?: MediaText;
  /** Error message for requests with images or audio, if it is known why the model reads none; otherwise absent. */
  mediaRefusal?: string;
  /** Sampling parameters that the model's makers recommend (`ModelText.sampling`). */
  sampling: ModelText['sampling'];
}

export interface TextOptions {
  /** Number of tokens after which the encoding of a user's text stops (`createTokenizer`). Default: no limit. */
  mostTokens?: number;
  /** Number of logits at each position (`createVocabulary`). Default: the number of tokens in the tokenizer's files. */
  vocabSize?: number;
}

/**
 * Reads the tokenizer, vocabulary and chat template of the model in the folder `dir`. Throws `engine_failed`: with the
 * file's name, if `tokenizer.json` is missing or one of the files is damaged or too large; otherwise if the tokenizer
 * or the template cannot be used.
 */
export async function loadTextModel(dir: string, options?: TextOptions): Promise<TextModel> {
  return createTextModel(await readModelText(dir), options);
}

/**
 * Creates the tokenizer, vocabulary and chat template from the contents of a model's files. Throws `engine_failed` if
 * the tokenizer or the template cannot be used.
 */
export function createTextModel(model: ModelText, { mostTokens, vocabSize }: TextOptions = {}): TextModel {
  const tokenizer = createTokenizer(model, mostTokens);
  const { bos_token, eos_token, pad_token, unk_token } = model.tokenizerConfig;
  const special = Object.entries({ bos_token, eos_token, pad_token, unk_token }).map(([name, token]) => [
    name,
    tokenText(token),
  ]);
  const compile = (source: string | null) => createChatTemplate(source, Object.fromEntries(special));
  const own = compile(model.template);
  const { toolTemplate } = model;
  const either = toolTemplate === null ? own : withToolTemplate(own, () => compile(toolTemplate));
  const template = withTextTags(either, tokenizer.controlTexts);
  // Some published configurations name only the token that ends a text, not the one that ends a message, so the latter
  // is read from the template. A token between reasoning and answer ends a message too, but the answer follows.
  const between = new Set(template.reasoning.tokens.map((token) => tokenizer.id(token)));
  const endOfTurn = tokenizer
    .encodeTemplate(template.afterAnswer, true)
    .find((id) => tokenizer.control.has(id) && !between.has(id));
  const vocabulary = createVocabulary(model, tokenizer, {
    endOfTurn: endOfTurn === undefined ? [] : [endOfTurn],
    width: vocabSize,
  });
  return { tokenizer, vocabulary, template, sampling: model.sampling };
}

/**
 * Returns a chat template that renders conversations with tools by the model's second template (Hermes 3, Command R),
 * and all others by `template`. `compile` creates the second template when it is first used, so one that cannot be used
 * fails only conversations with tools.
 */
export function withToolTemplate(template: ChatTemplate, compile: () => ChatTemplate): ChatTemplate {
  let compiled: ChatTemplate | undefined;
  const forTools = (): ChatTemplate => {
    compiled ??= compile();
    return compiled;
  };
  return {
    ...template,
    tools: () => forTools().tools(),
    render(messages, options) {
      const chosen = options?.tools || messages.some(isToolUse) ? forTools() : template;
      return chosen.render(messages, options);
    },
  };
}

/**
 * Returns the same template, except that `tools()` returns null if it writes arguments between tags that contain
 * control tokens (GLM-4.5): the grammar writes arguments as text, in which the model could not write these tokens.
 */
export function withTextTags(template: ChatTemplate, controls: ReadonlyMap<string, number>): ChatTemplate {
  const tools = () => {
    const format = template.tools();
    const tags = Object.values(format?.tags ?? {}).join('');
    return codeControls(tags, controls) === tags ? format : null;
  };
  return { ...template, tools };
}
