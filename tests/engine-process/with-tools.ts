import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Gives the model a template with tools, and the tokens that it writes around calls. */
export function withTools(folder: string): void {
  const template = readFileSync(new URL('../fixtures/text/tools/hermes.jinja', import.meta.url), 'utf8');
  // Without a word about reasoning, as random weights never end theirs.
  writeFileSync(join(folder, 'chat_template.jinja'), template.replace('<think>\\n\\n</think>\\n\\n', ''));
  const path = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(readFileSync(path, 'utf8'));
  const added = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false };
  tokenizer.added_tokens.push(
    { id: 500, content: '<tool_call>', ...added },
    { id: 501, content: '</tool_call>', ...added },
  );
  writeFileSync(path, JSON.stringify(tokenizer));
}
