test_that("formulas are sums of names, odd ones in backticks", {
  named <- formula_names(Kcal ~ Grain + (Sugar + `a*b`) + `y ~ x`, character())
  expect_equal(named, list(response = "Kcal", terms = c("Grain", "Sugar", "a*b", "y ~ x")))
  expect_equal(formula_names(`Kcal vs Fat` ~ ., c("a", "Kcal vs Fat", "b"))$terms, c("a", "b"))
  expect_error(formula_names(Kcal ~ Grain:Sugar, character()), "only sums")
  expect_error(formula_names(Kcal ~ log(Grain), character()), "only sums")
  expect_error(formula_names(log(Kcal) ~ Grain, character()), "one variable on the left")
  expect_error(formula_names(~Grain, character()), "must be like")
})

test_that("coefficients are those of every draw", {
  needs_python()
  set.seed(1)
  posterior <- dp_erl(complete_table(), engine = "native", draws = 300, seed = 1)
  fit <- dp_regress(posterior, Kcal ~ Grain + Sugar)
  R <- dp_draws(posterior)[2, 7, , ]
  row <- posterior$draws + 7
  expect_equal(unname(fit$coefficients[row, ]), as.vector(solve(R[2:3, 2:3], R[2:3, 1])))
  expect_equal(fit$r_squared[row], drop(R[1, 2:3] %*% solve(R[2:3, 2:3], R[2:3, 1])))
  table <- summary(fit)
  expect_equal(unname(coef(fit)), table$mean[table$quantity == "coefficient"])
  expect_equal(unname(confint(fit)[, 2]), table$upper[table$quantity == "coefficient"])
  expect_equal(rownames(confint(fit, "Sugar")), "Sugar")
  expect_output(print(fit), "NOT PRIVATE")
  expect_identical(as.data.frame(fit), table)
  expect_error(dp_regress(posterior, Kcal ~ Grani), "Grani")
})

test_that("regressions from a release use its joint draws", {
  needs_python()
  set.seed(1)
  release <- suppressWarnings(dp_release(complete_table(), 5))
  posterior <- dp_bayes_na(release, draws = 50, chains = 2, seed = 1)
  fit <- dp_regress(posterior, Kcal ~ Grain + Sugar)
  R <- dp_draws(posterior, joint = TRUE)[2, 7, , ]
  expect_equal(unname(fit$coefficients[57, ]), as.vector(solve(R[2:3, 2:3], R[2:3, 1])))
  expect_false(isTRUE(all.equal(R, dp_draws(posterior)[2, 7, , ])))
  file <- tempfile(fileext = ".rds")
  saveRDS(posterior, file)
  expect_equal(coef(dp_regress(readRDS(file), Kcal ~ Grain + Sugar)), coef(fit))
  apart <- dp_bayes_na(release, draws = 50, chains = 2, seed = 1, joint = FALSE)
  expect_null(dp_draws(apart, joint = TRUE))
  fit <- dp_regress(apart, Kcal ~ Grain + Sugar)
  R <- dp_draws(apart)[2, 7, , ]
  expect_equal(unname(fit$coefficients[57, ]), as.vector(solve(R[2:3, 2:3], R[2:3, 1])))
})
