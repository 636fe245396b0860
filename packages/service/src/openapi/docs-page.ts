/** The OpenAPI document as a page: plain HTML without scripts. */

interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<
    Record<string, { readonly description?: string; readonly content?: Content }>
  >;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>;

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly contentSchema?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

interface Document {
  readonly info: { readonly title: string; readonly description?: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
details { border: 1px solid #8886; border-radius: .4rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; } summary b { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
code, dt { font-family: ui-monospace, monospace; } dl { margin-left: 1rem; } dd { margin: 0 0 .4rem 1.5rem; }
h3, h4 { margin: .8rem 0 0; } small { opacity: .75; }`;

export function docsPage(document: object): string {
  const { info, tags, paths, components } = document as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const sections = tags.map(({ name, description = '' }) => {
    const own = operations.filter(({ operation }) => operation.tags?.includes(name));
    const html = own.map(({ method, path, operation }) => operationHtml(method, path, operation));
    return `<h2>${escaped(name)}</h2><p>${prose(description)}</p>${html.join('\n')}`;
  });
  const schemas = Object.entries(components.schemas).map(([name, schema]) => componentHtml(name, schema));
  const title = escaped(info.title);
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title} API</title>
<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head><body>
<h1>${title}</h1><p>${prose(info.description ?? '')}</p>
<p><a href="/v2/openapi.json">openapi.json</a></p>${sections.join('\n')}
<h2>Schemas</h2>${schemas.join('\n')}</body></html>`;
}

function operationHtml(method: string, path: string, operation: Operation): string {
  const { summary = '', description = '', parameters = [], requestBody, responses = {} } = operation;
  const parts = [`<p>${prose(description)}</p>`];
  if (parameters.length > 0) {
    const rows = parameters.map((one) =>
      row(one.name, one.schema ?? {}, one.required ?? false, one.in, one.description),
    );
    parts.push(`<h4>Parameters</h4><dl>${rows.join('')}</dl>`);
  }
  if (requestBody) parts.push(`<h4>Body</h4>${contentHtml(requestBody.content)}`);
  for (const [status, response] of Object.entries(responses)) {
    const about = prose(response.description ?? '');
    parts.push(`<h4>${escaped(status)}</h4><p>${about}</p>${contentHtml(response.content)}`);
  }
  return `<details><summary><b>${escaped(method.toUpperCase())} ${escaped(path)}</b> ${escaped(summary)}</summary>${parts.join('')}</details>`;
}

function contentHtml(content: Content | undefined): string {
  return Object.entries(content ?? {})
    .map(([type, { schema = {} }]) => {
      return `<p><small>${escaped(type)}</small> ${typeHtml(schema.contentSchema ?? schema)}</p>${membersHtml(schema)}`;
    })
    .join('');
}

function componentHtml(name: string, schema: Schema): string {
  const about = `<p>${prose(schema.description ?? '')}</p>`;
  return `<h3 id="${escaped(name)}">${escaped(name)}</h3>${about}<p>${typeHtml(schema)}</p>${membersHtml(schema)}`;
}

/** The members of an object, or of each of several. Components are linked, not repeated. */
function membersHtml(schema: Schema): string {
  const choices = schema.anyOf ?? schema.oneOf ?? (schema.items ? [schema.items] : []);
  if (choices.length > 0) return choices.map(membersHtml).join('');
  const members = Object.entries(schema.properties ?? {});
  if (members.length === 0) return '';
  const rows = members.map(([name, member]) => row(name, member, schema.required?.includes(name) ?? false));
  return `<dl>${rows.join('')}</dl>`;
}

function row(
  name: string,
  schema: Schema,
  required: boolean,
  place = '',
  about = schema.description,
): string {
  const notes = [typeHtml(schema), place, required ? 'required' : '']
    .filter((note) => note !== '')
    .join(', ');
  return `<dt>${escaped(name)} <small>${notes}</small></dt><dd>${prose(about ?? '')}${membersHtml(schema)}</dd>`;
}

function typeHtml(schema: Schema): string {
  const { $ref, items, format } = schema;
  if ($ref !== undefined) {
    const name = escaped($ref.slice($ref.lastIndexOf('/') + 1));
    return `<a href="#${name}">${name}</a>`;
  }
  if (schema.const !== undefined) return escaped(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map((value) => escaped(JSON.stringify(value))).join(' | ');
  if (items) return `array of ${typeHtml(items)}`;
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map(typeHtml).join(' | ');
  const types = [schema.type ?? 'any'].flat().join(' | ');
  return escaped(format === undefined ? types : `${types} (${format})`);
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (letter) => ENTITIES[letter] ?? letter);
}

/** Text between backticks is code. */
function prose(text: string): string {
  return escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
