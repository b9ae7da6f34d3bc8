export const LANGUAGES = ['curl', 'TypeScript', 'Python'] as const;
export type Language = (typeof LANGUAGES)[number];

/** Returns a program that sends the request. It reads the key from `ASSAY_API_KEY`. */
export function requestCode(language: Language, origin: string, path: string, body: unknown): string {
  const json = JSON.stringify(body, null, 2);
  switch (language) {
    case 'curl':
      return [
        `curl ${origin}${path} \\`,
        '  -H "Authorization: Bearer $ASSAY_API_KEY" -H \'Content-Type: application/json\' \\',
        `  -d '${json.replaceAll("'", "'\\''")}'`,
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
        'console.log(await response.json());',
      ].join('\n');
    case 'Python':
      return [
        'import json, os, urllib.request',
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
        'print(json.load(urllib.request.urlopen(request)))',
      ].join('\n');
  }
}
