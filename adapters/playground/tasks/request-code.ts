export const CODE_LANGUAGES = ['curl', 'TypeScript', 'Python'] as const;
export type CodeLanguage = (typeof CODE_LANGUAGES)[number];

/**
 * Returns the text of a program that sends `body` as JSON to `path` of the server `origin`, with POST, and prints the
 * response. The program reads the key from the variable `ASSAY_API_KEY`.
 */
export function requestCode(language: CodeLanguage, origin: string, path: string, body: unknown): string {
  const json = JSON.stringify(body, null, 2);
  switch (language) {
    case 'curl':
      return [
        `curl ${origin}${path} \\`,
        '  -H "Authorization: Bearer $ASSAY_API_KEY" -H \'Content-Type: application/json\' \\',
        // As an argument, the body could have at most 128 KiB.
        "  -d @- <<'JSON'",
        json,
        'JSON',
      ].join('\n');
    case 'TypeScript':
      return [
        `const response = await fetch('${origin}${path}', {`,
        "  method: 'POST',",
        '  headers: {',
        '    authorization: "Bearer " + process.env.ASSAY_API_KEY,',
        "    'content-type': 'application/json',",
        '  },',
        `  body: JSON.stringify(${json.replaceAll('\n', '\n  ')}),`,
        '});',
        'console.dir(await response.json(), { depth: null });',
      ].join('\n');
    case 'Python':
      return [
        'import json, os, urllib.error, urllib.request',
        '',
        `body = json.loads(r'''${json.replaceAll("'''", "''\\u0027")}''')`,
        'request = urllib.request.Request(',
        `    "${origin}${path}",`,
        '    data=json.dumps(body).encode(),',
        '    headers={',
        '        "Authorization": f"Bearer {os.environ[\'ASSAY_API_KEY\']}",',
        '        "Content-Type": "application/json",',
        '    },',
        ')',
        'try:',
        '    answer = json.load(urllib.request.urlopen(request))',
        'except urllib.error.HTTPError as error:',
        '    raise SystemExit(error.read().decode())',
        'print(json.dumps(answer, indent=2))',
      ].join('\n');
  }
}
