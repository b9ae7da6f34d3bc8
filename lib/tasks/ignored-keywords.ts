import type { JsonSchema } from '../answer-shape.ts';
import { patternDefinesFormat, refuseFormat, refuseKeyword, WITHOUT_EFFECT } from '../grammar/schema/keywords.ts';
import { subschemas } from '../grammar/schema/subschemas.ts';
import { pathTo } from '../param-path.ts';

/**
 * Throws `unsupported_schema` if a schema has a keyword, or a `format` beside a `pattern`, that `compileSchema` accepts
 * and ignores. Tasks refuse these, because their interface ignores nothing silently (docs/interface.md, D-12); chats
 * accept them, because clients write them into every schema.
 *
 * @param schema a schema that `compileSchema` has accepted
 * @param path path of the schema in the caller's input, for errors
 */
export function refuseIgnoredKeywords(schema: JsonSchema, path: string): void {
  for (const [one, at] of subschemas(schema, path)) {
    const ignored = WITHOUT_EFFECT.find((keyword) => Object.hasOwn(one, keyword));
    if (ignored !== undefined) refuseKeyword(pathTo(at, ignored), ignored, one);
    if (patternDefinesFormat(one)) refuseFormat(one.format, pathTo(at, 'format'));
  }
}
