// Writes the statements of pg-boss into files, with our arguments in them:
// node pg_boss.js DIRECTORY
const fs = require('fs')
const PgBoss = require('pg-boss')
const plans = require('pg-boss/src/plans')

const put = (sql, values) => sql.replace(/\$(\d+)/g, (_, n) => values[n - 1] ?? 'NULL')
const write = (name, sql) => fs.writeFileSync(`${process.argv[2]}/${name}.sql`, sql)
const take = count => 'WITH taken AS (' +
	put(plans.fetchNextJob('pgboss')(), ["'bench'", count]) + ') SELECT data, id, name, "expireInSeconds" FROM taken'
const jobs = "(SELECT json_agg(json_build_object('name', 'bench', 'data', p)) FROM unnest($1::jsonb[]) p)"

write('setup', PgBoss.getConstructionPlans('pgboss') +
	"; SELECT pgboss.create_queue('bench', '{\"policy\": \"standard\"}')")
write('send', put(plans.insertJob('pgboss'), ['NULL', "'bench'", '$1']))
write('send_many', put(plans.insertJobs('pgboss'), [jobs]))
write('take', take(1))
write('take_many', take(100))
write('ack', put(plans.completeJobs('pgboss'), ["'bench'", 'ARRAY[$1]']))
write('ack_many', put(plans.completeJobs('pgboss'), ["'bench'", '$1']))
