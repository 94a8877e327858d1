import type { Otlp, OtlpOptions } from '../../app/features/telemetry.ts';
import { readOtlpSettings } from './otlp-settings.ts';

/**
 * Starts the export to an OpenTelemetry collector, if its variables name one; undefined otherwise. The SDK is loaded only
 * then, because loading it takes a large part of a start. Without its packages, the log says what to install, and the
 * gateway runs on: a cluster may set the variables for all of its programs.
 */
export async function loadOtlp(options: OtlpOptions): Promise<Otlp | undefined> {
  const settings = readOtlpSettings(options.environment);
  if (settings.signals.length === 0) return undefined;
  for (const warning of settings.warnings) options.logger.warn(warning);
  try {
    const { connectOtlp } = await import('./connect-otlp.ts');
    return connectOtlp(settings, options);
  } catch (cause) {
    const missing = missingPackage(cause);
    if (missing === undefined) throw cause;
    options.logger.error(
      // A bare name would get another major version.
      { missing, remedy: 'npm install --include=optional mcp-gangway' },
      'OTLP is off, because an optional package of the gateway is not installed. Install it, or unset OTEL_EXPORTER_OTLP_ENDPOINT.',
    );
    return undefined;
  }
}

/** The package of OpenTelemetry that was not found; undefined if the import failed for another reason. */
function missingPackage(cause: unknown): string | undefined {
  if (!(cause instanceof Error) || !('code' in cause) || cause.code !== 'ERR_MODULE_NOT_FOUND') return undefined;
  return /'(@opentelemetry\/[\w-]+)/.exec(cause.message)?.[1];
}
