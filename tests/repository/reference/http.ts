/** The reference of the HTTP API, from the OpenAPI document that the service makes of the schemas of its routes. */

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly contentSchema?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>;

interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly (Schema & {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: Schema;
  })[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

export interface OpenApi {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const ABOUT = `Every operation of the [lock service](../service/README.md), with its parameters and their defaults, its answers and its problems.
[Its API](../service/api.md) explains them with \`curl\`. A running service has the same as a page at \`/v2/docs\`, and for generators at
\`/v2/openapi.json\`. Made from that document by \`npm run api:update\`; a test compares them.`;

export function httpReference({ info, tags, paths, components }: OpenApi): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const sections = tags.flatMap(({ name, description }) => [
    `## ${name}`,
    description,
    ...operations
      .filter(({ operation }) => operation.tags.includes(name))
      .flatMap(({ method, path, operation }) => operationText(method, path, operation)),
  ]);
  const schemas = Object.entries(components.schemas).flatMap(([name, schema]) => [
    `### ${name}`,
    ...shapeText(schema),
  ]);
  return `${['# HTTP reference', ABOUT, info.description, ...sections, '## Schemas', ...schemas].join('\n\n')}\n`;
}

function operationText(method: string, path: string, operation: Operation): readonly string[] {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const body = requestBody?.content['application/json']?.schema;
  const rows = parameters.map(({ name, in: place, required, description: text, schema }) =>
    itemText(
      `${name}`,
      { ...schema, ...(text !== undefined && { description: text }) },
      required,
      ` in the ${place}`,
    ),
  );
  const answers = Object.entries(responses).map(([status, response]) => {
    const schema = Object.values(response.content ?? {})[0]?.schema;
    const shape = status.startsWith('2') && schema ? ` ${typeText(schema)}` : '';
    return `| ${status} | ${cell(response.description)}${shape} |`;
  });
  return [
    `### ${method.toUpperCase()} ${path}`,
    `${summary}.${description === undefined ? '' : ` ${description}`}`,
    ...(rows.length > 0 ? ['Parameters:', rows.join('\n')] : []),
    ...(body ? [`Body: ${typeText(body)}`] : []),
    ['| status | meaning |', '| --- | --- |', ...answers].join('\n'),
  ];
}

function shapeText(schema: Schema): readonly string[] {
  const { description, properties, required = [] } = schema;
  const texts = description === undefined ? [] : [description];
  if (!properties) return [...texts, `Type: ${typeText({ ...schema, description: '' })}`];
  const members = Object.entries(properties).map(([name, member]) =>
    itemText(name, member, required.includes(name)),
  );
  return [...texts, members.join('\n')];
}

function itemText(name: string, schema: Schema, required: boolean, place = ''): string {
  const fallback = schema.default === undefined ? '' : ` Default \`${JSON.stringify(schema.default)}\`.`;
  const what = `${typeText(schema)}${place}${required ? '' : ', optional'}`;
  const description = schema.description === undefined ? '' : `: ${schema.description}`;
  return `- \`${name}\` (${what})${description}${fallback}`;
}

/** A type in words, with links to the named ones. */
function typeText({
  $ref,
  type,
  const: only,
  enum: values,
  items,
  contentSchema,
  oneOf,
  anyOf,
}: Schema): string {
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1) ?? '';
    return `[${name}](#${name.toLowerCase()})`;
  }
  const choices = oneOf ?? anyOf;
  if (choices) return choices.map(typeText).join(' or ');
  if (only !== undefined) return `\`${JSON.stringify(only)}\``;
  if (values) return values.map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
  if (contentSchema) return `stream of ${typeText(contentSchema.items ?? contentSchema)}`;
  if (items) return `list of ${typeText(items)}`;
  return [type ?? 'any value'].flat().join(' or ');
}

const cell = (content: string): string => content.replaceAll('|', '\\|');
