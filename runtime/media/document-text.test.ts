import { expect, test } from 'vitest';
import { documentFormat, documentText } from './document-text.ts';

/** Writes a PDF with these lines on each page. */
function pdf(pages: readonly (readonly string[])[]): Uint8Array {
  const objects: string[] = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '',
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ];
  const kids: number[] = [];
  for (const lines of pages) {
    const escaped = lines.map((line) => `(${line.replaceAll(/[()\\]/g, '\\$&')}) Tj T*`);
    const stream = `BT /F1 10 Tf 12 TL 40 800 Td ${escaped.join('\n')} ET`;
    const content = objects.push(`<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`);
    const page = `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents ${content} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`;
    kids.push(objects.push(page));
  }
  objects[1] = `<< /Type /Pages /Kids [${kids.map((kid) => `${kid} 0 R`).join(' ')}] /Count ${kids.length} >>`;
  let text = '%PDF-1.4\n';
  const places = objects.map((object, i) => {
    const place = text.length;
    text += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(place).padStart(10, '0')} 00000 n \n`;
  });
  const at = text.length;
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.join('')}`;
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${at}\n%%EOF`;
  return Buffer.from(text, 'latin1');
}

test('reads 200 pages of a PDF in order, with every fact in them', async () => {
  const pages = Array.from({ length: 200 }, (_, page) => [
    `Page ${page + 1} (of 200)`,
    ...Array.from({ length: 20 }, (_, i) => `Clause ${page * 20 + i} says that party ${i % 7} keeps its copy.`),
    ...(page % 20 === 3 ? [`The fact ${page} is VALUE-${page * 7919}.`] : []),
  ]);
  const bytes = pdf(pages);
  expect(documentFormat(bytes, 'x')).toBe('pdf');
  expect(await documentText(bytes, 'pdf')).toBe(pages.map((lines) => lines.join('\n')).join('\n\n'));
});

test('reads an HTML page as its reader sees it', async () => {
  const html = `<!DOCTYPE html><html><head><title>T</title><style>p{}</style></head><body><nav><a>Home</a></nav>
    <h1>The   lease</h1><p>The tenant is <b>Bo</b>&nbsp;Lee &amp; sons.<br>Second line.</p><script>alert(1)</script>
    <table><tr><th>Item</th><th>Price</th></tr><tr><td>Rent</td><td>1,080.00</td></tr></table><pre>a  b
c</pre><ul><li>one<li>two</ul></body></html>`;
  expect(documentFormat(Buffer.from(html), 'page')).toBe('html');
  expect(await documentText(Buffer.from(html), 'html')).toBe(
    'Home\n\nThe lease\n\nThe tenant is Bo Lee & sons.\nSecond line.\n\nItem\tPrice\n\nRent\t1,080.00\n\na  b\nc\n\none\n\ntwo',
  );
});

test.each([
  ['mail.txt', 'Hello', null],
  ['a.docx', 'PK\u0003\u0004', 'docx'],
  ['a.zip', 'PK\u0003\u0004', null],
  ['a.htm', 'no tags', 'html'],
  ['x', '\n%PDF-1.7', 'pdf'],
])('knows %s by its name and beginning', (name, begin, format) => {
  expect(documentFormat(Buffer.from(begin), name)).toBe(format);
});

test.each(['pdf', 'docx'] as const)('refuses a damaged %s', async (format) => {
  await expect(documentText(Buffer.from('%PDF-1.4 nothing'), format)).rejects.toThrow();
});
