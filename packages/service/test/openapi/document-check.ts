/** Compares real answers with the OpenAPI document: status, content type and every member of the body. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

export type Schema = Readonly<Record<string, unknown>>;

interface Response {
  readonly description: string;
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
}

export interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, Response>>;
}

export interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface Answered {
  readonly method: string;
  /** With or without a query. */
  readonly path: string;
  readonly status: number;
  readonly contentType: string;
  readonly body: unknown;
}

export class DocumentCheck {
  readonly #paths: readonly {
    readonly pattern: RegExp;
    readonly operations: Readonly<Record<string, Operation>>;
  }[];
  readonly #ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true });
  readonly #compiled = new Map<string, ValidateFunction>();

  constructor(document: Document) {
    this.#paths = Object.entries(document.paths).map(([template, operations]) => {
      const pattern = template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+');
      return { pattern: new RegExp(`^${pattern}$`), operations };
    });
    addFormats.default(this.#ajv);
    this.#ajv.addVocabulary(['discriminator']);
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      this.#ajv.addSchema(closed(schema) as Schema, name);
    }
  }

  /** What the document says differently. An answer of a path that is not in the document has nothing to say. */
  findings({ method, path, status, contentType, body }: Answered): readonly string[] {
    const operation = this.operationOf(method, path);
    if (!operation) return [];
    const { operationId, responses } = operation;
    const response = responses[status];
    if (!response) return [`${operationId} answers ${status}, which the OpenAPI document does not name`];
    const [type = ''] = contentType.split(';');
    const schema = response.content[type]?.schema;
    if (!schema)
      return [`${operationId} answers ${status} as ${type}, which the OpenAPI document does not name`];
    const findings = this.findingsIn(schema, body).map((text) => `${operationId} ${status}: ${text}`);
    const code = (body as { readonly code?: unknown } | null)?.code;
    if (type === 'application/problem+json' && !response.description.includes(`\`${String(code)}\``)) {
      findings.push(`${operationId} answers ${status} with the code ${String(code)}, which is not described`);
    }
    return findings;
  }

  findingsIn(schema: Schema, value: unknown): string[] {
    const validate = this.#validatorOf(schema);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message, params }) => {
      return `${instancePath} ${message ?? ''} ${JSON.stringify(params)}`;
    });
  }

  #validatorOf(schema: Schema): ValidateFunction {
    const text = JSON.stringify(schema);
    const validate = this.#compiled.get(text) ?? this.#ajv.compile(closed(schema) as Schema);
    this.#compiled.set(text, validate);
    return validate;
  }

  operationOf(method: string, path: string): Operation | undefined {
    const [bare = ''] = path.split('?');
    return this.#paths.find(({ pattern }) => pattern.test(bare))?.operations[method.toLowerCase()];
  }
}

/** As the document has it, but a member that it does not name is an error; and references by plain names. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]: [string, unknown]) => {
    return [name, name === '$ref' ? String(member).replace('#/components/schemas/', '') : closed(member)];
  });
  const schema = Object.fromEntries(members) as Record<string, unknown>;
  // Told from a member that is called so by its type.
  const isObject = schema.type === 'object' && typeof schema.properties === 'object';
  return isObject ? { additionalProperties: false, ...schema } : schema;
}
