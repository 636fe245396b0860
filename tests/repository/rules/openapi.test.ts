import { createConfig, lintFromString } from '@redocly/openapi-core';
import { memoryStore } from 'holdfast/memory';
import { createService } from 'holdfast-service';
import { expect, it } from 'vitest';

it('the OpenAPI document has nothing that a public linter would warn of', async () => {
  const service = createService({ store: memoryStore() });
  try {
    const response = await fetch(`${await service.listen()}/v2/openapi.json`);
    const source = await response.text();
    const config = await createConfig({ extends: ['recommended'] });
    const findings = await lintFromString({ source, absoluteRef: 'openapi.json', config });
    const inWords = findings.map(({ severity, ruleId, message, location }) => {
      return `${severity} ${ruleId}: ${message} ${location[0]?.pointer ?? ''}`;
    });
    expect(inWords).toEqual([]);
  } finally {
    await service.close();
  }
});
