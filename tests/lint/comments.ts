/** Columns of a line with a comment. The formatter keeps code within the same limit. */
const COLUMNS = 120;

/** Question words: a doc comment that begins with one describes a thing instead of saying what it does. */
const QUESTION = /^(What|Whether|When|How|Why|Who|Whose|Which|Where)\b/;

/** Verbs in the third person. Nouns in the plural look the same, so those that comments began with are excluded. */
const VERB = /^(?!(?:Its|This|Those|Always)\b)[A-Z][a-z]+s\b/;
const NOUN =
  /^(Access|Address|Alias|Attributes|Bytes|Cells|Characters|Facts|Fields|Files|Flags|Folders|Keys|Measurements|Messages|Methods|Milliseconds|Options|Process|Progress|Rows|Seconds|Status|Tokens|Upstreams)\b/;

/** Declarations whose doc comment begins with a verb. Constants, members and getters may begin with a noun. */
const DECLARATION =
  /^\s*(?:(?:export|default|declare|abstract|async) )*(?:function|class|interface|type)\b|^\s+(?:(?:private|protected|static|override|async|abstract) )*\*?(?!constructor\()#?[\w$]+(?:<[^>]*>)?\(/;

const DOC_COMMENT = /^[ \t]*\/\*\*(?!\/)([\s\S]*?)\*\/[ \t]*(?:\n(.*))?$/gm;

/**
 * Returns the faults of a file's comments: a line over 120 columns, a doc comment that begins with a question word, and
 * one of a function, method, class or type that does not begin with a verb (tests may).
 */
export function commentViolations(file: string, source: string): string[] {
  return [...longLines(file, source), ...wrongBeginnings(file, source)];
}

function wrongBeginnings(file: string, source: string): string[] {
  const isTest = file.startsWith('tests/') || /\.(test|fixture)\.ts$/.test(file);
  return [...source.matchAll(DOC_COMMENT)].flatMap(({ 1: comment = '', 2: declaration = '', index }) => {
    const text = comment.replace(/^[\s*]+/, '');
    const verb = VERB.test(text) && !NOUN.test(text);
    const fits = verb || (!QUESTION.test(text) && (isTest || !DECLARATION.test(declaration)));
    if (fits) return [];
    const line = source.slice(0, index).split('\n').length;
    return [`${file}:${line}: a doc comment begins with "${text.split(/\s/, 1)[0]}"; begin with a verb: "Returns"`];
  });
}

function longLines(file: string, source: string): string[] {
  let inBlock = false;
  return source.split('\n').flatMap((line, index) => {
    const trimmed = line.trim();
    const isComment = inBlock || /^\s*\/[/*]|\s\/\/ /.test(line);
    if (inBlock || trimmed.startsWith('/*')) inBlock = !trimmed.includes('*/');
    if (!isComment || line.length <= COLUMNS) return [];
    return [`${file}:${index + 1}: a comment has ${line.length} columns; wrap it at ${COLUMNS}`];
  });
}
