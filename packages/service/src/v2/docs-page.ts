/** The OpenAPI document as a page: plain HTML, without a script, made from whatever the document says. */

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
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
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
details { border: 1px solid #8886; border-radius: .4rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; } summary b { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
code, dt { font-family: ui-monospace, monospace; } dl { margin-left: 1rem; } dd { margin: 0 0 .4rem 1.5rem; }
h4 { margin: .8rem 0 0; } small { opacity: .75; }`;

export function docsPage(document: object): string {
  const { info, paths } = document as {
    readonly info: { readonly title: string; readonly description?: string };
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => operationHtml(method, path, operation)),
  );
  const title = escaped(info.title);
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title} API</title>
<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head><body>
<h1>${title}</h1><p>${escaped(info.description ?? '')}</p>
<p><a href="/v2/openapi.json">openapi.json</a></p>${operations.join('\n')}</body></html>`;
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
    const about = response.description === 'Default Response' ? '' : escaped(response.description ?? '');
    parts.push(`<h4>${escaped(status)}</h4><p>${about}</p>${contentHtml(response.content)}`);
  }
  return `<details><summary><b>${escaped(method.toUpperCase())} ${escaped(path)}</b> ${escaped(summary)}</summary>${parts.join('')}</details>`;
}

function contentHtml(content: Content | undefined): string {
  return Object.entries(content ?? {})
    .map(([type, { schema }]) => `<small>${escaped(type)}</small>${schemaHtml(schema ?? {})}`)
    .join('');
}

function schemaHtml(schema: Schema): string {
  const one = schema.items ?? schema;
  const choices = one.oneOf ?? [];
  if (choices.length > 0) return choices.map(schemaHtml).join('<p>or</p>');
  const members = Object.entries(one.properties ?? {});
  if (members.length === 0) return '';
  const rows = members.map(([name, member]) => row(name, member, one.required?.includes(name) ?? false));
  return `<dl>${rows.join('')}</dl>`;
}

function row(
  name: string,
  schema: Schema,
  required: boolean,
  place = '',
  about = schema.description,
): string {
  const notes = [typeOf(schema), place, required ? 'required' : ''].filter((note) => note !== '').join(', ');
  const inner = schema.properties || schema.items ? schemaHtml(schema) : '';
  return `<dt>${escaped(name)} <small>${escaped(notes)}</small></dt><dd>${prose(about ?? '')}${inner}</dd>`;
}

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' | ');
  return [schema.type ?? 'any'].flat().join(' | ');
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

/** What stands between backticks is code. */
function prose(text: string): string {
  return escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
