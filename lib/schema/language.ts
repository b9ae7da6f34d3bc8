import * as v from 'valibot';

/** The languages of answers (docs/interface.md, D-14). */
export const LANGUAGES = [
  'en',
  'es',
  'fr',
  'de',
  'it',
  'pt',
  'nl',
  'ru',
  'ja',
  'ko',
  'zh',
  'ar',
  'hi',
  'tr',
  'pl',
  'sv',
  'da',
  'no',
  'fi',
  'cs',
] as const;

export const Language = v.picklist(LANGUAGES);
export type Language = v.InferOutput<typeof Language>;
