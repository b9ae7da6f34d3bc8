/** How a generator wants the parts of the contract that have no one form. */
export interface Form {
  /** Which operations' schemas the client needs. */
  tags: readonly ('decision service' | 'model server')[];
  /** Lists of known values: `union` writes "one of these, or any other text", `text` writes text and tells them in words. */
  enums: 'union' | 'text';
  /** The member that tells the variants of a union apart, inside each variant: as it is, filled in by itself, or left to the union. */
  tag: 'keep' | 'default' | 'drop';
  /** Whether the generator must be told that objects may have more members; the others take that for granted. */
  saysOpen?: boolean;
}

type Node = { [keyword: string]: unknown };
interface Contract {
  info: Node;
  paths: Record<string, Record<string, Node & { tags: string[] }>>;
  components: { schemas: Record<string, Node>; [kind: string]: unknown };
}

/**
 * The contract as a client reads it: the server judges requests, and may be newer than the client. So limits and defaults
 * are left to the server, every list of values is open (decision-service.md, "Versioning"), and objects may have more members.
 */
export function clientContract(contract: Contract, form: Form): object {
  const operations = Object.entries(contract.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags.some((tag) => form.tags.includes(tag as Form['tags'][number])))
      .map(([method, operation]) => ({ path, method, operation: plainOperation(operation) })),
  );
  const schemas = reachable(operations, contract.components.schemas);
  const paths: Record<string, Node> = {};
  for (const { path, method, operation } of operations) paths[path] = { ...paths[path], [method]: operation };
  const open = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, openSchema(schema, form)]));
  return { openapi: '3.1.0', info: contract.info, paths, components: { schemas: withTags(open, form) } };
}

/** Without error responses and headers: those the client's own code reads. */
function plainOperation({ operationId, tags, summary, requestBody, responses }: Node & { tags: string[] }): Node {
  const success = (responses as Record<string, Node>)['200'];
  const error = { description: 'Failed.', content: { 'application/json': { schema: { $ref: ref('ErrorBody') } } } };
  const body = requestBody ? { requestBody: withoutExamples(requestBody) } : {};
  const { headers: _, ...answer } = success ?? {};
  return { operationId, tags, summary, ...body, responses: { 200: withoutExamples(answer), default: error } };
}

function withoutExamples(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body, (key, value) => (key === 'examples' ? undefined : value)));
}

function ref(name: string): string {
  return `#/components/schemas/${name}`;
}

/** The schemas that `from` refers to, and those that these refer to, in the contract's order. */
function reachable(from: unknown, schemas: Record<string, Node>): Record<string, Node> {
  const found = new Set<string>();
  const visit = (node: unknown) => {
    for (const [, name] of JSON.stringify(node).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (found.has(name!)) continue;
      found.add(name!);
      visit(schemas[name!]);
    }
  };
  visit(from);
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => found.has(name)));
}

const LEFT_TO_THE_SERVER = new Set([
  'minLength',
  'maxLength',
  'pattern',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'default',
  'examples',
]);

function openSchema(schema: Node, form: Form): Node {
  const kept = Object.entries(schema).filter(
    ([keyword, value]) => !LEFT_TO_THE_SERVER.has(keyword) && !(keyword === 'additionalProperties' && value === false),
  );
  // Of these unions exactly one branch holds, and generators make more of `oneOf`.
  const named = kept.map(([keyword, value]) => [keyword === 'anyOf' ? 'oneOf' : keyword, value] as const);
  const node = Object.fromEntries(named.map(([keyword, value]) => [keyword, openKeyword(keyword, value, form)]));
  if (form.saysOpen && node.properties) return { ...node, additionalProperties: {} };
  return isOpenList(node) ? openList(node, form) : node;
}

function openKeyword(keyword: string, value: unknown, form: Form): unknown {
  if (keyword === 'properties') {
    return Object.fromEntries(
      Object.entries(value as Node).map(([name, one]) => [name, openSchema(one as Node, form)]),
    );
  }
  if (Array.isArray(value)) return value.map((one) => (isNode(one) ? openSchema(one, form) : one));
  // Any value at all: the form that generators take for a plain map.
  if (keyword === 'additionalProperties' && value === true) return {};
  return isNode(value) && keyword !== 'discriminator' ? openSchema(value, form) : value;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A list of texts that may grow; one of a single text is the tag of a variant. */
function isOpenList(node: Node): node is Node & { enum: string[] } {
  return node.type === 'string' && Array.isArray(node.enum) && node.enum.length > 1;
}

function openList({ enum: known, description, ...rest }: Node & { enum: string[] }, { enums }: Form): Node {
  if (enums === 'union')
    return { ...(description ? { description } : {}), anyOf: [{ ...rest, enum: known }, { type: 'string' }] };
  const words = `Known values: ${known.join(', ')}.`;
  return { ...rest, description: description ? `${description} ${words}` : words };
}

/** The members that tell variants apart, in the form that the generator wants. */
function withTags(schemas: Record<string, Node>, { tag, enums }: Form): Record<string, Node> {
  if (tag === 'keep') return schemas;
  const tags = new Map<string, string>();
  for (const { discriminator } of Object.values(schemas)) {
    if (!isNode(discriminator)) continue;
    for (const target of Object.values(discriminator.mapping as Record<string, string>)) {
      tags.set(target, discriminator.propertyName as string);
    }
  }
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const member = tags.get(ref(name));
      return [name, member ? withTag(schema, member, { tag, enums }) : schema];
    }),
  );
}

function withTag(schema: Node, member: string, { tag, enums }: Pick<Form, 'tag' | 'enums'>): Node {
  const { [member]: old, ...others } = schema.properties as Record<string, Node>;
  const required = (schema.required as string[]).filter((name) => name !== member);
  const known = (old!.enum as string[])[0];
  const filled = { ...(enums === 'union' ? old : { type: 'string' }), default: known };
  return { ...schema, required, properties: tag === 'drop' ? others : { [member]: filled, ...others } };
}
