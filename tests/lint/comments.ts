/** Columns of a line with a comment. The formatter keeps code within the same limit. */
const COLUMNS = 120;

/** Question words: a doc comment that begins with one describes a thing instead of saying what it does. */
const QUESTION = /^(What|Whether|How|Who|Whose|Which|Where)\b/;

/**
 * Returns the faults of a file's comments: a line over 120 columns, and a doc comment that begins with a question word
 * instead of a verb.
 */
export function commentViolations(file: string, source: string): string[] {
  const faults: string[] = [];
  const state = { inBlock: false, docBegins: false };
  for (const [index, line] of source.split('\n').entries()) {
    const at = `${file}:${index + 1}`;
    const text = commentOf(line, state);
    if (text === null) continue;
    if (line.length > COLUMNS) faults.push(`${at}: a comment has ${line.length} columns; wrap it at ${COLUMNS}`);
    if (state.docBegins && text !== '') {
      state.docBegins = false;
      if (QUESTION.test(text))
        faults.push(`${at}: a doc comment begins with "${text.split(' ', 1)[0]}"; begin with a verb`);
    }
  }
  return faults;
}

/**
 * Returns the comment's text on a line, null for a line without one. Follows block comments from line to line in
 * `state`.
 */
function commentOf(line: string, state: { inBlock: boolean; docBegins: boolean }): string | null {
  const trimmed = line.trim();
  const opens = /^\/\*(\*?)/.exec(trimmed);
  if (!state.inBlock && !opens) {
    const comment = /(?:^|\s)\/\/\s(.*)/.exec(line);
    return comment ? (comment[1] ?? '') : null;
  }
  state.docBegins ||= opens?.[1] === '*';
  state.inBlock = !trimmed.includes('*/');
  const text = trimmed.replace(/^\/?\*+\/?\s*/, '').replace(/\s*\*\/.*$/, '');
  if (!state.inBlock && text === '') state.docBegins = false;
  return text;
}
