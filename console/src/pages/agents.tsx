import { api, content, type Schemas } from '../api/client';
import { useLoad } from '../api/load';
import { Empty, ErrorNotice, Facts, Loading, PageHead, State } from '../components/controls';
import { useRows } from '../components/rows';
import { LongText, Name } from '../components/text';
import { count, dateTime, visible } from '../format';

type Agent = Schemas['KnownAgents']['agents'][number];

/** Skills of an agent that are shown. */
const MAX_SKILLS = 50;

/** The other agents that the gateway knows. */
export function AgentsPage() {
  const list = useLoad(() => content(api.GET('/agents')), []);
  const { rows, end } = useRows(list.data?.agents ?? [], []);
  if (list.data === undefined) {
    return <Loading error={list.error} retry={list.reload} />;
  }
  const { enabled, agents } = list.data;
  return (
    <>
      <PageHead title="Agents">
        <span class="muted">{enabled ? count(agents.length, 'agent') : ''}</span>
      </PageHead>
      <ErrorNotice error={list.error} retry={list.reload} />
      {!enabled && (
        <Empty>
          The gateway knows no other agents: <code>builtins: {'{agents: {}}'}</code> in the manifest enables them.
        </Empty>
      )}
      {enabled && agents.length === 0 && <Empty>No other agent is known.</Empty>}
      <div class="cards">
        {rows.map((agent) => (
          <AgentCard key={agent.name} agent={agent} />
        ))}
      </div>
      {end}
    </>
  );
}

const SOURCES = { card: 'URL in the manifest', file: 'file of known agents', bus: 'announcement on the bus' } as const;

function AgentCard({ agent }: { agent: Agent }) {
  const { name, description, version, source, wellKnown, lastSeen, problem, skills } = agent;
  return (
    <article class="card" aria-label={`Agent ${visible(name)}`}>
      <div class="line">
        <h2>
          <Name>{name}</Name>
        </h2>
        <State kind={problem === undefined ? 'good' : 'bad'}>{problem === undefined ? 'available' : 'not available'}</State>
      </div>
      {problem !== undefined && <div class="cause">{visible(problem.slice(0, 500))}</div>}
      <LongText limit={500}>{description}</LongText>
      <Facts>
        {[
          ['Version', version !== undefined && <Name key="version">{version}</Name>],
          ['Source', wellKnown && source !== 'file' ? `${SOURCES[source]}, ${SOURCES.file}` : SOURCES[source]],
          ['Last seen', dateTime(lastSeen)],
        ]}
      </Facts>
      {skills.length > 0 && (
        <>
          <h3>Skills</h3>
          <ul>
            {skills.slice(0, MAX_SKILLS).map((skill) => (
              <li key={skill.id}>
                <Name>{skill.name}</Name> <code>{visible(skill.id)}</code>
                <LongText limit={300}>{skill.description}</LongText>
              </li>
            ))}
            {skills.length > MAX_SKILLS && <li>and {count(skills.length - MAX_SKILLS, 'more skill')}</li>}
          </ul>
        </>
      )}
    </article>
  );
}
