/** Describes a generator's form for the parts of the contract that have several. */
export interface Form {
  /** The operations whose schemas the client needs. */
  tags: readonly ('decision service' | 'decision formats' | 'model server')[];
  /**
   * Lists of known values: `union` writes "one of these, or any other text", `text` writes text and lists them in the
   * description.
   */
  enums: 'union' | 'text';
  /**
   * Unions without a name, such as "a string or a boolean", and null in optional members: `keep`, or `any`, which
   * allows any value and leaves null out, for generators that make a class of each union.
   */
  unions: 'keep' | 'any';
  /**
   * The member that distinguishes the variants of a union, inside each variant: kept, filled in automatically, or left
   * to the union.
   */
  tag: 'keep' | 'default' | 'drop';
  /** True if the generator must be told that objects may have more members; the others assume it. */
  saysOpen?: boolean;
}

type Node = { [keyword: string]: unknown };
interface Contract {
  info: Node;
  paths: Record<string, Record<string, Node & { tags: string[] }>>;
  components: { schemas: Record<string, Node>; [kind: string]: unknown };
}

/**
 * Returns the contract in the form of a client: the server validates requests, and may be newer than the client. So
 * limits and defaults are left to the server, every list of values is open (docs/interface.md, D-32), and objects may
 * have more members.
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

/** Omits error responses and headers, which the client's own code reads. */
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

/** Returns the schemas that `from` refers to, directly or indirectly, in the contract's order. */
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
  // Exactly one branch of these unions holds, and generators handle `oneOf` better.
  const named = kept.map(([keyword, value]) => [keyword === 'anyOf' ? 'oneOf' : keyword, value] as const);
  const node = Object.fromEntries(named.map(([keyword, value]) => [keyword, openKeyword(keyword, value, form)]));
  if (form.unions === 'any' && isNode(node.properties)) node.properties = withoutNull(node);
  if (form.saysOpen && node.properties) return { ...node, additionalProperties: {} };
  return isOpenList(node) ? openList(node, form) : node;
}

function openKeyword(keyword: string, value: unknown, form: Form): unknown {
  if (keyword === 'properties') {
    return Object.fromEntries(
      Object.entries(value as Node).map(([name, one]) => [name, openInside(one as Node, form)]),
    );
  }
  if (Array.isArray(value)) return value.map((one) => (isNode(one) ? openInside(one, form) : one));
  // Any value: the form that generators turn into a plain map.
  if (keyword === 'additionalProperties' && value === true) return {};
  return isNode(value) && keyword !== 'discriminator' ? openInside(value, form) : value;
}

/** Opens a schema that has no name, in a form that the generator can express. */
function openInside(schema: Node, form: Form): Node {
  const node = openSchema(schema, form);
  if (form.unions === 'keep') return node;
  const { description, oneOf, properties } = node;
  const described = description ? { description } : {};
  if (Array.isArray(oneOf) && !isNullable(oneOf)) return described;
  // A map in place of an object whose members have names that few languages allow.
  if (isNode(properties) && 'true' in properties) return { type: 'object', ...described, additionalProperties: {} };
  return node;
}

/** Returns the properties of an object; the optional ones without null, which says the same as leaving them out. */
function withoutNull({ properties, required = [] }: Node): Node {
  const plain = (one: Node): Node => {
    const [only] = Array.isArray(one.oneOf) ? one.oneOf.filter(({ type }: Node) => type !== 'null') : [];
    if (only) return { ...one, ...only, oneOf: undefined };
    return Array.isArray(one.type) ? { ...one, type: one.type.find((type) => type !== 'null') } : one;
  };
  const members = Object.entries(properties as Record<string, Node>);
  return Object.fromEntries(
    members.map(([name, one]) => [name, (required as string[]).includes(name) || one.discriminator ? one : plain(one)]),
  );
}

/** Recognises a union of one known form and null. */
function isNullable(union: readonly Node[]): boolean {
  const forms = union.filter(({ type }) => type !== 'null');
  return forms.length === 1 && ('$ref' in forms[0]! || 'type' in forms[0]!);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Tells whether a schema lists known texts and may get more. A list of one text is the tag of a variant, which does
 * not.
 */
function isOpenList(node: Node): node is Node & { enum: string[] } {
  return node.type === 'string' && Array.isArray(node.enum) && node.enum.length > 1;
}

function openList({ enum: known, description, ...rest }: Node & { enum: string[] }, { enums }: Form): Node {
  if (enums === 'union')
    return { ...(description ? { description } : {}), anyOf: [{ ...rest, enum: known }, { type: 'string' }] };
  const words = `Known values: ${known.join(', ')}.`;
  return { ...rest, description: description ? `${description} ${words}` : words };
}

/** Returns the members that distinguish variants, in the generator's form. */
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
