/** Settings from a JSON file: by the names of the flags, and two groups of limits. */
import { InvalidArgumentError } from 'holdfast';
import type { PrincipalLimits } from '../auth/allowance.js';
import type { Limits } from '../http/limits.js';
import { SETTINGS, type Values } from './settings.js';

interface Written {
  readonly values: Values;
  readonly limits: Partial<Limits>;
  readonly principalLimits: Partial<PrincipalLimits>;
}

export function readFile(text: string): Written {
  const { limits, principalLimits, ...rest } = objectIn(text);
  const values: Values = {};
  for (const [name, value] of Object.entries(rest)) {
    const setting = SETTINGS.find((each) => each.name === name);
    if (!setting) {
      throw new InvalidArgumentError(
        `The configuration file has "${name}", which is not a setting. Settings are: ` +
          `${SETTINGS.map((each) => each.name).join(', ')}, limits, principalLimits.`,
      );
    }
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw new InvalidArgumentError(`"${name}" in the configuration file is no text, number or boolean.`);
    }
    values[setting.name] = String(value);
  }
  return {
    values,
    limits: groupOf('limits', limits),
    principalLimits: groupOf('principalLimits', principalLimits),
  };
}

/** What is in it is checked by whoever owns these limits. */
function groupOf(name: string, value: unknown = {}): Readonly<Record<string, number>> {
  if (isObject(value)) return value as Record<string, number>;
  throw new InvalidArgumentError(`"${name}" in the configuration file has to be an object.`);
}

function objectIn(text: string): Record<string, unknown> {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (cause) {
    throw new InvalidArgumentError('The configuration file is not JSON.', { cause });
  }
  if (isObject(read)) return read;
  throw new InvalidArgumentError('The configuration file has to be one JSON object.');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
