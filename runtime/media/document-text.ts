import { type DefaultTreeAdapterTypes, parse } from 'parse5';

/** Formats of documents whose text is read. */
export type DocumentFormat = 'pdf' | 'docx' | 'html';

/** Maximum length of the text of a document in UTF-16 code units: that of a request's body. */
const MOST_TEXT = 20 * 1024 * 1024;

/** Returns the format of a document by its first bytes and its name; null if it is none of these. */
export function documentFormat(bytes: Uint8Array, name: string): DocumentFormat | null {
  const begin = new TextDecoder('latin1').decode(bytes.subarray(0, 1024));
  if (begin.includes('%PDF-')) return 'pdf';
  if (begin.startsWith('PK\u0003\u0004') && /\.docx$/i.test(name)) return 'docx';
  return /\.html?$/i.test(name) || /^\s*(<!doctype html|<html)/i.test(begin) ? 'html' : null;
}

/**
 * Returns the text of a document: pages and paragraphs with an empty line between them. Runs in the media process only,
 * because the file is not trusted. Throws if the file is damaged, or has more text than a request may have.
 */
export async function documentText(bytes: Uint8Array, format: DocumentFormat): Promise<string> {
  const text = await TEXTS[format](bytes);
  if (text.length > MOST_TEXT) throw new Error('the document has too much text');
  return text;
}

const TEXTS: Record<DocumentFormat, (bytes: Uint8Array) => Promise<string>> = {
  async pdf(bytes) {
    const { extractText, getDocumentProxy } = await import('unpdf');
    // The library keeps the array, so it gets one of its own.
    const document = await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 });
    const { text } = await extractText(document, { mergePages: false });
    return text.map((page) => page.trim()).join('\n\n');
  },
  async docx(bytes) {
    const { default: mammoth } = await import('mammoth');
    const { value } = await mammoth.extractRawText({ buffer: Buffer.from(bytes) });
    return value.trim();
  },
  async html(bytes) {
    return htmlText(new TextDecoder().decode(bytes));
  },
};

/** Elements whose content nobody reads. */
const UNREAD = new Set(['head', 'script', 'style', 'template', 'noscript', 'svg']);
/** Elements that begin a paragraph of their own, and those that begin a line. */
const PARAGRAPHS =
  /^(address|article|aside|blockquote|body|dl|fieldset|figure|footer|form|h[1-6]|header|main|nav|ol|p|pre|section|table|ul)$/;
const LINES = /^(br|dd|div|dt|figcaption|hr|legend|li|option|tr)$/;

/** Returns the text of an HTML document as a reader sees it, without its layout. */
function htmlText(html: string): string {
  let text = '';
  const walk = (node: DefaultTreeAdapterTypes.Node, verbatim: boolean): void => {
    if ('value' in node && node.nodeName === '#text') {
      text += verbatim ? node.value : node.value.replaceAll(/\s+/g, ' ');
      return;
    }
    if (!('childNodes' in node) || UNREAD.has(node.nodeName)) return;
    const name = node.nodeName;
    const around = PARAGRAPHS.test(name)
      ? '\n\n'
      : LINES.test(name)
        ? '\n'
        : name === 'td' || name === 'th'
          ? '\t'
          : '';
    text += around;
    for (const child of node.childNodes) walk(child, verbatim || name === 'pre');
    if (name !== 'br') text += around;
  };
  walk(parse(html), false);
  return text
    .replaceAll(/[ \t]*\n[ \t]*/g, '\n')
    .replaceAll(/\t+/g, '\t')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim();
}
