import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

let ajv: Ajv2020 | undefined;
let compiled = 0;

/** ajv with all formats checked in full, and with `multipleOf` in exact decimals instead of floating-point division. */
export function validator(schema: object): (value: unknown) => boolean {
  // Creating one takes long, and keeping one for ever keeps all schemas.
  if (!ajv || compiled++ % 500 === 0) ajv = newAjv();
  const validate = ajv.compile(schema);
  return (value) => validate(value) === true;
}

function newAjv(): Ajv2020 {
  const made = new Ajv2020({ strict: false, validateFormats: true, validateSchema: false, logger: false });
  // The package is CommonJS; its types put the function under `default`.
  (addFormats as unknown as (ajv: Ajv2020, options: object) => void)(made, { mode: 'full' });
  made.removeKeyword('multipleOf');
  made.addKeyword({
    keyword: 'multipleOf',
    type: 'number',
    validate: (step: number, value: number) => isMultiple(value, step),
  });
  return made;
}

function isMultiple(value: number, step: number): boolean {
  const [v, vPlaces] = units(value);
  const [s, sPlaces] = units(step);
  return (v * 10n ** BigInt(sPlaces)) % (s * 10n ** BigInt(vPlaces)) === 0n;
}

/** Splits a number as written into whole units and decimal places. */
function units(value: number): [bigint, number] {
  const [digits, exponent] = String(value).split('e') as [string, string?];
  const [whole, fraction = ''] = digits.split('.') as [string, string?];
  const places = fraction.length - Number(exponent ?? 0);
  const all = BigInt(whole + fraction);
  return places < 0 ? [all * 10n ** BigInt(-places), 0] : [all, places];
}

/** Tells whether no object in a JSON text has a repeated name. */
export function keysAreUnique(json: string): boolean {
  const open: (Set<string> | null)[] = [];
  let last = '';
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]/g)) {
    if (token === '{') open.push(new Set());
    else if (token === '[') open.push(null);
    else if (token === '}' || token === ']') open.pop();
    else if (token === ':') {
      const names = open.at(-1)!;
      if (names!.has(last)) return false;
      names!.add(last);
    } else last = token;
  }
  return true;
}
