import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readFixture } from '../fixture.ts';

const source = (name: string) => readFixture(`text/${name}.jinja`);

/** Gives the model a template with tools, and the tokens that it writes around calls. */
export function withTools(folder: string): void {
  // Without a word about reasoning, as random weights never end theirs.
  const template = source('tools/hermes').replace('<think>\\n\\n</think>\\n\\n', '');
  writeFileSync(join(folder, 'chat_template.jinja'), template);
  addCallTokens(folder);
}

/** Gives the model a template without tools, a second one for tools, and the tokens that the latter writes. */
export function withSecondTemplate(folder: string): void {
  writeFileSync(join(folder, 'chat_template.jinja'), source('chatml'));
  writeFileSync(join(folder, 'tool_use.jinja'), source('tools/signatures'));
  addCallTokens(folder);
}

function addCallTokens(folder: string): void {
  const path = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(readFileSync(path, 'utf8'));
  const added = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false };
  tokenizer.added_tokens.push(
    { id: 500, content: '<tool_call>', ...added },
    { id: 501, content: '</tool_call>', ...added },
  );
  writeFileSync(path, JSON.stringify(tokenizer));
}
